//! The kinds that CustomResourceDefinitions define.

use std::sync::Arc;

use longshore_builtin::{
    CUSTOM,
    definition::{is_condition_true, versions},
    json,
};
use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use longshore_schema::Structural;
use serde_json::{Map, Value};

use super::Entry;
use crate::{
    custom::{CustomKind, DefinitionSummary, Schemas},
    rules::ViewRules,
    view::View,
};

impl Entry {
    /// Compiles the kind of an established definition; `since` is the revision of the definition's
    /// schemas.
    pub(crate) fn custom(definition: &json::Object, since: u64) -> Self {
        let names = json::at(definition, "status.acceptedNames")
            .cloned()
            .unwrap_or_default();
        let text = |field: &str| names[field].as_str().unwrap_or_default().to_owned();
        let group = json::text(definition, "spec.group").to_owned();
        let info = |version: &json::Object| {
            let kind = text("kind");
            let list_kind = text("listKind");
            let subresources = version.get("subresources").and_then(Value::as_object);
            let has = |name: &&str| subresources.is_some_and(|all| all.contains_key(*name));
            KindInfo {
                gvk: Gvk {
                    group: group.clone().into(),
                    version: json::text(version, "name").to_owned().into(),
                    kind: kind.into(),
                },
                plural: text("plural").into(),
                singular: text("singular").into(),
                short_names: words(&names, "shortNames"),
                categories: words(&names, "categories"),
                scope: if json::text(definition, "spec.scope") == "Cluster" {
                    Scope::Cluster
                } else {
                    Scope::Namespaced
                },
                subresources: ["scale", "status"]
                    .into_iter()
                    .filter(has)
                    .map(str::to_owned)
                    .collect(),
                list_kind: (!list_kind.is_empty()).then(|| list_kind.into()),
            }
        };
        let nothing = Map::new();
        let stored = versions(definition)
            .find(|version| version.get("storage") == Some(&Value::Bool(true)))
            .unwrap_or(&nothing);
        let schema = |version: &json::Object| {
            let schema = json::at(version, "schema.openAPIV3Schema");
            Arc::new(Structural::parse(schema.unwrap_or(&Value::Null)))
        };
        let stored_schema = schema(stored);
        let stored = Arc::new(info(stored));
        let is_only_version = versions(definition).count() == 1;
        let strategy = json::text(definition, "spec.conversion.strategy");
        let webhook = json::at(definition, "spec.conversion.webhook");
        let webhook = webhook.filter(|_| strategy == "Webhook");
        let webhook = webhook.map(|webhook| Arc::new(webhook.clone()));
        let views = versions(definition)
            .filter(|version| version.get("served") == Some(&Value::Bool(true)))
            .map(|version| {
                let info = Arc::new(info(version));
                let rules = ViewRules::with_fields(&CUSTOM, selectable(version));
                let is_stored = info.gvk == stored.gvk;
                let schemas = Schemas {
                    own: match is_stored {
                        true => stored_schema.clone(),
                        false => schema(version),
                    },
                    storage: (!is_stored).then(|| stored_schema.clone()),
                };
                let custom = CustomKind::of_version(
                    version,
                    &info,
                    &stored,
                    since,
                    is_only_version,
                    webhook.clone(),
                    schemas,
                );
                Arc::new(View::custom(info, rules, Arc::new(custom)))
            })
            .collect();
        Self {
            store_name: stored.qualified(),
            rules: ViewRules::from(&CUSTOM),
            info: stored,
            views,
            revisions: Arc::default(),
            uid: json::text(definition, "metadata.uid").into(),
            is_live: true,
            definition: Some(json::text(definition, "metadata.name").into()),
            is_terminating: is_condition_true(definition, "Terminating"),
            definition_spec: json::at(definition, "spec").cloned().map(Arc::new),
            summary: Some(Arc::new(DefinitionSummary::of(definition))),
        }
    }
}

fn words(names: &Value, field: &str) -> Words {
    names[field]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

fn selectable(version: &json::Object) -> Arc<[String]> {
    json::items(version, "selectableFields")
        .map(|field| {
            json::text(field, "jsonPath")
                .trim_start_matches('.')
                .to_owned()
        })
        .collect()
}
