//! The definitions that a document's kinds need, with annotations for kinds and for patch and list
//! rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::{
    custom::{self, Describe},
    extension::{KIND, kind_value},
};
use crate::{ListType, Strategy, TypeRef, definitions::reference, packages, registry};

/// The types of bodies that all groups share.
pub(super) const SHARED: [&str; 4] = ["DeleteOptions", "Patch", "Status", "WatchEvent"];

/// The definition of a subresource's object if it differs from the kind's: group, version, kind.
pub(super) fn subresource_kind(
    subresource: &str,
) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match subresource {
        "scale" => ("autoscaling", "v1", "Scale"),
        "eviction" => ("policy", "v1", "Eviction"),
        "binding" => ("", "v1", "Binding"),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest"),
        "attach" => ("", "v1", "PodAttachOptions"),
        "exec" => ("", "v1", "PodExecOptions"),
        "portforward" => ("", "v1", "PodPortForwardOptions"),
        _ => return None,
    })
}

/// The definitions that `kinds` need, by name, with their annotations.
pub(super) fn of_kinds<'a, K: Describe + 'a>(
    kinds: impl IntoIterator<Item = &'a K>,
) -> BTreeMap<String, Value> {
    let registry = registry();
    let mut todo: Vec<String> = SHARED
        .iter()
        .map(|kind| format!("{}.{kind}", packages::META))
        .collect();
    let mut versions = BTreeSet::new();
    let mut definitions = BTreeMap::new();
    for kind in kinds {
        let info = kind.info();
        if let Some(schema) = kind.schema() {
            let own = [
                (custom::name(info), custom::definition(info, schema)),
                custom::list(info),
            ];
            for (name, definition) in own {
                references(&definition, &mut todo);
                definitions.insert(name, definition);
            }
        }
        versions.insert((info.gvk.group.to_string(), info.gvk.version.to_string()));
        if let Some(name) = registry.name_of(&info.gvk) {
            todo.push(name.to_owned());
            todo.push(format!("{name}List"));
        }
        for (group, version, kind) in info.subresources.iter().filter_map(subresource_kind) {
            todo.extend(packages::definition(group, version, kind));
        }
    }
    let kind_annotations = kind_annotations(&versions);
    while let Some(wanted) = todo.pop() {
        let Some((name, schema)) = registry.entry(&wanted) else {
            continue;
        };
        if definitions.contains_key(name) {
            continue;
        }
        references(schema, &mut todo);
        let mut schema = schema.clone();
        if let Some(of_type) = registry.named(name) {
            annotate_rules(&mut schema, of_type);
        }
        if let (Some(kinds), Some(fields)) = (kind_annotations.get(name), schema.as_object_mut()) {
            fields.insert(KIND.to_owned(), Value::Array(kinds.clone()));
        }
        definitions.insert(name.to_owned(), schema);
    }
    definitions
}

/// The kinds of definitions that belong to no group. Options and events are kinds
/// in every group and version.
fn kind_annotations(versions: &BTreeSet<(String, String)>) -> HashMap<String, Vec<Value>> {
    let mut kind_annotations = HashMap::new();
    for kind in ["DeleteOptions", "WatchEvent"] {
        let kinds = versions
            .iter()
            .map(|(group, version)| kind_value(group, version, kind));
        kind_annotations.insert(format!("{}.{kind}", packages::META), kinds.collect());
    }
    kind_annotations.insert(
        format!("{}.Status", packages::META),
        vec![kind_value("", "v1", "Status")],
    );
    kind_annotations
}

/// Collects the names that a schema refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = reference(schema) {
                names.push(name.to_owned());
            }
            fields.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// Adds the patch and list rules of the type graph to a definition.
fn annotate_rules(schema: &mut Value, of_type: TypeRef) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    if of_type.is_atomic() {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        if let (Some(at), Some(property)) = (of_type.field(name), property.as_object_mut()) {
            annotate_field(property, at);
        }
    }
}

fn annotate_field(property: &mut Map<String, Value>, at: TypeRef) {
    let mut mark = |word: &str, value: Value| property.insert(word.to_owned(), value);
    let strategy = match at.patch().strategy {
        Strategy::Replace => None,
        Strategy::ReplaceObject => Some("replace"),
        Strategy::Merge => Some("merge"),
        Strategy::RetainKeys => Some("retainKeys"),
        Strategy::MergeRetainKeys => Some("merge,retainKeys"),
    };
    if let Some(strategy) = strategy {
        mark("x-kubernetes-patch-strategy", strategy.into());
    }
    if let Some(key) = at.patch().merge_key {
        mark("x-kubernetes-patch-merge-key", key.into());
    }
    match at.declared_list_type() {
        Some(ListType::Atomic) => {
            mark("x-kubernetes-list-type", "atomic".into());
        }
        Some(ListType::Set) => {
            mark("x-kubernetes-list-type", "set".into());
        }
        Some(ListType::Map) => {
            mark("x-kubernetes-list-type", "map".into());
            mark("x-kubernetes-list-map-keys", json!(at.list_map_keys()));
        }
        None => {}
    }
    if at.is_atomic() && at.definition().is_none() {
        mark("x-kubernetes-map-type", "atomic".into());
    }
}

/// Converts the definitions to v2, which does not support `oneOf`: a type with
/// alternatives becomes a string or is omitted.
pub(super) fn in_v2<K: Describe>(kinds: &[K]) -> BTreeMap<String, Value> {
    let definitions = of_kinds(kinds).into_iter();
    let in_v2 = definitions.map(|(name, definition)| {
        let mut definition = custom::definition_for_v2(&definition);
        if matches!(name.rsplit('.').next(), Some("Quantity" | "IntOrString")) {
            definition["type"] = "string".into();
        }
        (name, definition)
    });
    in_v2.collect()
}
