//! Discovery: the groups, versions and resources that are served, in the legacy
//! format (one document per group and version) and aggregated in one document.

use std::{collections::BTreeMap, sync::Arc};

use longshore_builtin::{KindRules, find_served};
use longshore_model::{KindInfo, Scope, kind};
use serde_json::{Value, json};

use crate::review::REVIEWS;

/// Verbs that every kind supports.
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// One resource with the fields that both formats need.
struct Resource {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    /// Whether a CustomResourceDefinition defines it.
    custom: bool,
    verbs: Vec<&'static str>,
    short_names: Vec<String>,
    categories: Vec<String>,
    subresources: Vec<Sub>,
}

struct Sub {
    name: String,
    kind: String,
    /// Group and version of the kind, if they differ from the resource's.
    of: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

/// Everything that is served, by group and version.
pub(crate) struct Catalog(BTreeMap<String, BTreeMap<String, Vec<Resource>>>);

impl Catalog {
    pub(crate) fn new(kinds: &[Arc<KindInfo>]) -> Self {
        let mut groups: BTreeMap<String, BTreeMap<String, Vec<Resource>>> = BTreeMap::new();
        let mut add = |group: &str, version: &str, resource| {
            let versions = groups.entry(group.to_owned()).or_default();
            versions
                .entry(version.to_owned())
                .or_default()
                .push(resource);
        };
        for info in kinds {
            add(&info.gvk.group, &info.gvk.version, resource(info));
        }
        for review in REVIEWS {
            let resource = Resource {
                plural: review.plural.into(),
                singular: review.kind.to_lowercase(),
                kind: review.kind.into(),
                namespaced: review.namespaced,
                custom: false,
                verbs: vec!["create"],
                short_names: Vec::new(),
                categories: Vec::new(),
                subresources: Vec::new(),
            };
            add(review.group, "v1", resource);
        }
        // The legacy collection to which a Binding that names its pod can be
        // posted.
        let bindings = Resource {
            plural: "bindings".into(),
            singular: "binding".into(),
            kind: "Binding".into(),
            namespaced: true,
            custom: false,
            verbs: vec!["create"],
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        };
        add("", "v1", bindings);
        for versions in groups.values_mut() {
            for resources in versions.values_mut() {
                resources.sort_by(|a, b| a.plural.cmp(&b.plural));
            }
        }
        Self(groups)
    }

    /// `/api`.
    pub(crate) fn core_versions(&self) -> Value {
        let versions: Vec<&String> = self
            .0
            .get("")
            .into_iter()
            .flat_map(BTreeMap::keys)
            .collect();
        json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [],
        })
    }

    /// `/apis`.
    pub(crate) fn groups(&self) -> Value {
        let groups: Vec<Value> = self
            .named()
            .map(|(name, versions)| group(name, versions))
            .collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/{group}`.
    pub(crate) fn group(&self, name: &str) -> Option<Value> {
        let versions = self.0.get(name).filter(|_| !name.is_empty())?;
        let mut value = group(name, versions);
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
        Some(value)
    }

    /// `/api/{version}`, `/apis/{group}/{version}`.
    pub(crate) fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let resources = self.0.get(group)?.get(version)?;
        let mut list = Vec::new();
        for resource in resources {
            list.push(resource.legacy());
            for sub in &resource.subresources {
                let mut value = json!({
                    "name": format!("{}/{}", resource.plural, sub.name),
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": sub.kind,
                    "verbs": sub.verbs,
                });
                if let Some((group, version)) = sub.of {
                    value["group"] = group.into();
                    value["version"] = version.into();
                }
                list.push(value);
            }
        }
        Some(json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group_version(group, version),
            "resources": list,
        }))
    }

    /// Aggregated discovery of the core group (`/api`) or of the other groups
    /// (`/apis`). `version` is the version of `apidiscovery.k8s.io`.
    pub(crate) fn aggregated(&self, core: bool, version: &str) -> Value {
        let items: Vec<Value> =
            self.0
                .iter()
                .filter(|(name, _)| name.is_empty() == core)
                .map(|(name, versions)| {
                    let versions: Vec<Value> = by_priority(versions)
                    .into_iter()
                    .map(|(version, resources)| {
                        let resources: Vec<Value> =
                            resources.iter().map(|r| r.aggregated(name, version)).collect();
                        json!({"version": version, "resources": resources, "freshness": "Current"})
                    })
                    .collect();
                    let metadata = if core {
                        json!({})
                    } else {
                        json!({"name": name})
                    };
                    json!({"metadata": metadata, "versions": versions})
                })
                .collect();
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": format!("apidiscovery.k8s.io/{version}"),
            "metadata": {},
            "items": items,
        })
    }

    fn named(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Vec<Resource>>)> {
        self.0.iter().filter(|(name, _)| !name.is_empty())
    }
}

impl Resource {
    fn legacy(&self) -> Value {
        let mut value = json!({
            "name": self.plural,
            "singularName": self.singular,
            "namespaced": self.namespaced,
            "kind": self.kind,
            "verbs": self.verbs,
        });
        self.add_words(&mut value);
        value
    }

    fn aggregated(&self, group: &str, version: &str) -> Value {
        // The document's group and version are not repeated, except for custom
        // kinds (as in Kubernetes).
        let (group, version) = if self.custom {
            (group, version)
        } else {
            ("", "")
        };
        let kind = |kind: &str| json!({"group": group, "version": version, "kind": kind});
        let mut value = json!({
            "resource": self.plural,
            "responseKind": kind(&self.kind),
            "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": self.singular,
            "verbs": self.verbs,
        });
        self.add_words(&mut value);
        if !self.subresources.is_empty() {
            value["subresources"] = self
                .subresources
                .iter()
                .map(|sub| {
                    let kind = match sub.of {
                        Some((group, version)) => {
                            json!({"group": group, "version": version, "kind": sub.kind})
                        }
                        None => kind(&sub.kind),
                    };
                    json!({
                        "subresource": sub.name,
                        "responseKind": kind,
                        "verbs": sub.verbs,
                    })
                })
                .collect();
        }
        value
    }

    fn add_words(&self, value: &mut Value) {
        if !self.short_names.is_empty() {
            value["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            value["categories"] = json!(self.categories);
        }
    }
}

fn resource(info: &KindInfo) -> Resource {
    let rules = find_served(&info.gvk);
    let deletes_collection = rules.is_none_or(KindRules::supports_delete_collection);
    let verbs = VERBS
        .iter()
        .copied()
        .filter(|verb| deletes_collection || *verb != "deletecollection");
    Resource {
        plural: info.plural.to_string(),
        singular: info.singular.to_string(),
        kind: info.gvk.kind.to_string(),
        namespaced: info.scope == Scope::Namespaced,
        custom: kind::builtin(&info.gvk.group, &info.gvk.kind).is_none(),
        verbs: verbs.collect(),
        short_names: info.short_names.iter().map(ToString::to_string).collect(),
        categories: info.categories.iter().map(ToString::to_string).collect(),
        subresources: info
            .subresources
            .iter()
            .filter_map(|name| {
                let mut of = None;
                let (kind, verbs): (&str, &'static [&'static str]) = match name {
                    "status" | "approval" => (&info.gvk.kind, &["get", "patch", "update"]),
                    "scale" => {
                        of = Some(("autoscaling", "v1"));
                        ("Scale", &["get", "patch", "update"])
                    }
                    "log" => (&info.gvk.kind, &["get"]),
                    "attach" => ("PodAttachOptions", &["create", "get"]),
                    "exec" => ("PodExecOptions", &["create", "get"]),
                    "portforward" => ("PodPortForwardOptions", &["create", "get"]),
                    "proxy" => (
                        match &*info.gvk.kind {
                            "Pod" => "PodProxyOptions",
                            _ => "ServiceProxyOptions",
                        },
                        &["create", "delete", "get", "patch", "update"],
                    ),
                    "finalize" => (&info.gvk.kind, &["update"]),
                    "binding" => ("Binding", &["create"]),
                    "eviction" => {
                        of = Some(("policy", "v1"));
                        ("Eviction", &["create"])
                    }
                    "token" => {
                        of = Some(("authentication.k8s.io", "v1"));
                        ("TokenRequest", &["create"])
                    }
                    _ => return None,
                };
                Some(Sub {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                    of,
                    verbs,
                })
            })
            .collect(),
    }
}

/// Returns the versions of a group with the preferred one first: stable before
/// beta before alpha, higher before lower, other names last.
fn by_priority(versions: &BTreeMap<String, Vec<Resource>>) -> Vec<(&String, &Vec<Resource>)> {
    let rank = |version: &str| {
        let rest = version.strip_prefix('v')?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let major: u32 = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => (2, ""),
            rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => (1, minor),
                (None, Some(minor)) => (0, minor),
                (None, None) => return None,
            },
        };
        let minor: u32 = if stage == 2 { 0 } else { minor.parse().ok()? };
        Some((stage, major, minor))
    };
    let mut sorted: Vec<_> = versions.iter().collect();
    // The sort is stable: other names remain in alphabetical order.
    sorted.sort_by_key(|(version, _)| std::cmp::Reverse(rank(version)));
    sorted
}

fn group(name: &str, versions: &BTreeMap<String, Vec<Resource>>) -> Value {
    let versions: Vec<Value> = by_priority(versions)
        .into_iter()
        .map(|(version, _)| version)
        .map(|version| json!({"groupVersion": group_version(name, version), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_are_preferred() {
        let names = [
            "v1alpha2", "v1", "v10", "v2beta1", "v2", "later", "v1beta10", "v1beta9",
        ];
        let versions = names.map(|name| (name.to_owned(), Vec::new())).into();
        let sorted: Vec<_> = by_priority(&versions)
            .into_iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(
            sorted,
            [
                "v10", "v2", "v1", "v2beta1", "v1beta10", "v1beta9", "v1alpha2", "later"
            ]
        );
    }
}
