//! Reads the discovery document. Its parts about aggregated API servers come from these servers and
//! are not trusted. Pure.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use longshore_model::{Gvk, KindInfo, Scope, kind::Words, name};
use serde::Deserialize;
use serde_json::Value;

use super::GroupVersion;

/// The kinds and versions of aggregated API servers.
#[derive(Debug, Default)]
pub(crate) struct Aggregated {
    /// Each kind in its preferred version.
    pub(crate) kinds: Vec<AggregatedKind>,
    /// The versions whose server does not respond.
    pub(crate) failed: BTreeSet<GroupVersion>,
}

/// A kind of an aggregated API server.
#[derive(Debug)]
pub(crate) struct AggregatedKind {
    pub(crate) info: Arc<KindInfo>,
    verbs: Vec<String>,
}

impl AggregatedKind {
    /// Returns true if the server supports a verb.
    pub(crate) fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }
}

impl Aggregated {
    /// Returns the versions whose server does not respond, in Kubernetes' format.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = self.failed.iter();
        let failed = failed.map(|(group, version)| format!("{group}/{version}"));
        failed
            .map(|version| format!("{version}: stale GroupVersion discovery: {version}"))
            .collect()
    }
}

/// Returns the version that an APIService registers if a Service serves it.
pub(super) fn group_version(spec: &Value) -> Option<GroupVersion> {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    spec["service"]
        .is_object()
        .then(|| (text("group"), text("version")))
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    resource: String,
    singular_resource: String,
    scope: String,
    verbs: Vec<String>,
    response_kind: ResponseKind,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseKind {
    kind: String,
}

/// Reads the given versions from an aggregated discovery document. Servers list the preferred
/// version of a group first.
pub(super) fn aggregated(document: &Value, versions: &BTreeSet<GroupVersion>) -> Aggregated {
    let mut found = Aggregated::default();
    for group in document["items"].as_array().into_iter().flatten() {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        let mut known: HashSet<String> = HashSet::new();
        for version in group["versions"].as_array().into_iter().flatten() {
            let key = (
                name.to_owned(),
                version["version"].as_str().unwrap_or_default().to_owned(),
            );
            if !versions.contains(&key) {
                continue;
            }
            if version["freshness"] == "Stale" {
                found.failed.insert(key);
                continue;
            }
            for resource in version["resources"].as_array().into_iter().flatten() {
                let Ok(resource) = Resource::deserialize(resource) else {
                    continue;
                };
                if is_valid(&resource) && known.insert(resource.resource.clone()) {
                    found.kinds.push(kind(&key, resource));
                }
            }
        }
    }
    found
}

/// Returns true if the names are valid in paths.
fn is_valid(resource: &Resource) -> bool {
    name::dns_label("resource", &resource.resource).is_ok()
        && !resource.response_kind.kind.is_empty()
}

fn kind((group, version): &GroupVersion, resource: Resource) -> AggregatedKind {
    let kind = resource.response_kind.kind;
    let singular = match resource.singular_resource.as_str() {
        "" => kind.to_lowercase(),
        singular => singular.to_owned(),
    };
    let info = KindInfo {
        gvk: Gvk {
            group: group.clone().into(),
            version: version.clone().into(),
            kind: kind.into(),
        },
        plural: resource.resource.into(),
        singular: singular.into(),
        short_names: Words::default(),
        categories: Words::default(),
        scope: match resource.scope == "Namespaced" {
            true => Scope::Namespaced,
            false => Scope::Cluster,
        },
        subresources: Words::default(),
        list_kind: None,
    };
    AggregatedKind {
        info: Arc::new(info),
        verbs: resource.verbs,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(plural: &str, kind: &str, verbs: &[&str]) -> Value {
        json!({"resource": plural, "scope": "Namespaced", "verbs": verbs,
               "responseKind": {"group": "", "version": "", "kind": kind}})
    }

    fn key(group: &str, version: &str) -> GroupVersion {
        (group.to_owned(), version.to_owned())
    }

    #[test]
    fn each_kind_is_found_in_its_preferred_version() {
        let document = json!({"items": [
            {"metadata": {"name": "apps"}, "versions": [
                {"version": "v1", "resources": [resource("deployments", "Deployment", &["get"])]}]},
            {"metadata": {"name": "fish.example.com"}, "versions": [
                {"version": "v1", "freshness": "Current", "resources": [
                    resource("fish", "Fish", &["get", "delete"]),
                    resource("../secrets", "Bad", &["delete"]),
                    resource("unnamed", "", &["delete"]),
                    7]},
                {"version": "v1beta1", "freshness": "Current", "resources": [
                    resource("fish", "Fish", &["get"]), resource("boats", "Boat", &["list"])]},
                {"version": "v2", "freshness": "Stale", "resources": [
                    resource("fish", "Fish", &["get"])]}]},
        ]});
        let versions = ["v1", "v1beta1", "v2"].map(|version| key("fish.example.com", version));
        let found = aggregated(&document, &versions.into());
        let kinds: Vec<String> = found
            .kinds
            .iter()
            .map(|kind| kind.info.collection_path(Some("a")))
            .collect();
        assert_eq!(
            kinds,
            [
                "/apis/fish.example.com/v1/namespaces/a/fish",
                "/apis/fish.example.com/v1beta1/namespaces/a/boats",
            ]
        );
        assert!(found.kinds[0].supports("delete") && !found.kinds[0].supports("list"));
        assert_eq!(
            found.failures(),
            ["fish.example.com/v2: stale GroupVersion discovery: fish.example.com/v2",]
        );
    }

    #[test]
    fn only_services_serve_versions() {
        let mut spec = json!({"group": "g", "version": "v1"});
        assert_eq!(group_version(&spec), None);
        spec["service"] = json!({"name": "s"});
        assert_eq!(group_version(&spec), Some(key("g", "v1")));
    }
}
