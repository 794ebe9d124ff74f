//! Discovery: the served groups, versions and resources, in the legacy format (one document per
//! group and version) and aggregated in one document.

use std::{collections::BTreeMap, sync::Arc};

use longshore_builtin::{KindRules, find_served};
use longshore_engine::api_service_priorities;
use longshore_model::{KindInfo, Scope, kind};
use serde_json::{Value, json};

use crate::{
    aggregation::{AggregatedVersion, Discovered, GROUP_PRIORITY, VERSION_PRIORITY},
    review::REVIEWS,
    usage,
};

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

/// A resource with the fields that both formats need.
struct Resource {
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    /// True if a CustomResourceDefinition defines the resource.
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

/// The priorities of the group of APIServices, which comes first and has no APIService itself.
const OWN_PRIORITIES: (i64, i64) = (20_001, 0);

/// A version of a group.
enum Version {
    /// Served by this server.
    Own(Vec<Resource>),
    /// Served by an aggregated API server.
    Aggregated(Discovered),
}

/// A group with its versions by priority.
struct Group {
    name: String,
    versions: Vec<(String, Version)>,
}

/// All served groups, by priority.
pub(crate) struct Catalog(Vec<Group>);

type ByName<T> = BTreeMap<String, T>;

/// The resources of this server, by group and version. `measures` is true if a node measures
/// resource usage.
fn own(kinds: &[Arc<KindInfo>], measures: bool) -> ByName<ByName<Vec<Resource>>> {
    let mut groups: ByName<ByName<Vec<Resource>>> = BTreeMap::new();
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
            singular: review.kind.to_lowercase(),
            ..Resource::plain(review.plural, review.kind, review.namespaced, &["create"])
        };
        add(review.group, "v1", resource);
    }
    // The legacy collection to which a Binding that names its pod can be posted.
    let bindings = Resource {
        singular: "binding".into(),
        ..Resource::plain("bindings", "Binding", true, &["create"])
    };
    add("", "v1", bindings);
    for (plural, kind, namespaced) in usage::RESOURCES.iter().filter(|_| measures) {
        let resource = Resource::plain(plural, kind, *namespaced, &["get", "list"]);
        add(usage::GROUP, usage::VERSION, resource);
    }
    for versions in groups.values_mut() {
        for resources in versions.values_mut() {
            resources.sort_by(|a, b| a.plural.cmp(&b.plural));
        }
    }
    groups
}

/// The priorities of a group and its version that this server serves.
fn own_priorities(group: &str, version: &str) -> (i64, i64) {
    match group {
        "apiregistration.k8s.io" => OWN_PRIORITIES,
        usage::GROUP => usage::PRIORITIES,
        _ => api_service_priorities(group, version).unwrap_or((GROUP_PRIORITY, VERSION_PRIORITY)),
    }
}

impl Catalog {
    /// Builds the catalog. `measures` is true if a node measures resource usage.
    pub(crate) fn new(
        kinds: &[Arc<KindInfo>],
        measures: bool,
        aggregated: Vec<AggregatedVersion>,
    ) -> Self {
        type Prioritized = (i64, i64, Version);
        let mut groups: ByName<ByName<Prioritized>> = BTreeMap::new();
        for (name, versions) in own(kinds, measures) {
            let versions = versions.into_iter().map(|(version, resources)| {
                let (of_group, of_version) = own_priorities(&name, &version);
                (version, (of_group, of_version, Version::Own(resources)))
            });
            let versions = versions.collect();
            groups.insert(name, versions);
        }
        for found in aggregated {
            let versions = groups.entry(found.group).or_default();
            let version = Version::Aggregated(found.discovered);
            let prioritized = (found.group_priority, found.version_priority, version);
            versions.insert(found.version, prioritized);
        }
        let mut sorted: Vec<(i64, Group)> = Vec::new();
        for (name, versions) in groups {
            let priority = versions.values().map(|(of_group, ..)| *of_group).max();
            let mut versions: Vec<_> = versions.into_iter().collect();
            // The sort is stable: other names remain in alphabetical order.
            versions.sort_by_key(|(version, (_, priority, _))| {
                std::cmp::Reverse((*priority, rank(version)))
            });
            let versions = versions
                .into_iter()
                .map(|(version, (.., content))| (version, content));
            let group = Group {
                name,
                versions: versions.collect(),
            };
            sorted.push((priority.unwrap_or_default(), group));
        }
        sorted.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
        Self(sorted.into_iter().map(|(_, group)| group).collect())
    }

    /// `/api`.
    pub(crate) fn core_versions(&self) -> Value {
        let core = self.0.iter().filter(|group| group.name.is_empty());
        let versions: Vec<&String> = core
            .flat_map(|group| group.versions.iter().map(|(version, _)| version))
            .collect();
        json!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [],
        })
    }

    /// `/apis`.
    pub(crate) fn groups(&self) -> Value {
        let named = self.0.iter().filter(|group| !group.name.is_empty());
        let groups: Vec<Value> = named.map(Group::legacy).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/{group}`.
    pub(crate) fn group(&self, name: &str) -> Option<Value> {
        let mut named = self.0.iter().filter(|group| !group.name.is_empty());
        let mut value = named.find(|group| group.name == name)?.legacy();
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
        Some(value)
    }

    /// `/api/{version}`, `/apis/{group}/{version}` of this server.
    pub(crate) fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let found = self.0.iter().find(|found| found.name == group)?;
        let mut versions = found.versions.iter();
        let (_, content) = versions.find(|(found, _)| found == version)?;
        let Version::Own(resources) = content else {
            return None;
        };
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
        let groups = self.0.iter().filter(|group| group.name.is_empty() == core);
        let items: Vec<Value> = groups.map(Group::aggregated).collect();
        json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": format!("apidiscovery.k8s.io/{version}"),
            "metadata": {},
            "items": items,
        })
    }
}

impl Group {
    fn legacy(&self) -> Value {
        let versions = self.versions.iter().map(|(version, _)| {
            let group_version = group_version(&self.name, version);
            json!({"groupVersion": group_version, "version": version})
        });
        let versions: Vec<Value> = versions.collect();
        json!({"name": self.name, "versions": versions, "preferredVersion": versions.first()})
    }

    fn aggregated(&self) -> Value {
        let versions = self.versions.iter().map(|(version, content)| {
            let (resources, is_stale) = match content {
                Version::Own(own) => {
                    let own = own.iter().map(|own| own.aggregated(&self.name, version));
                    (own.collect(), false)
                }
                Version::Aggregated(found) => (found.resources.clone(), found.is_stale),
            };
            let freshness = if is_stale { "Stale" } else { "Current" };
            let resources: Vec<Value> = resources;
            json!({"version": version, "resources": resources, "freshness": freshness})
        });
        let versions: Vec<Value> = versions.collect();
        let metadata = match self.name.as_str() {
            "" => json!({}),
            name => json!({"name": name}),
        };
        json!({"metadata": metadata, "versions": versions})
    }
}

impl Resource {
    fn plain(plural: &str, kind: &str, namespaced: bool, verbs: &[&'static str]) -> Self {
        Self {
            plural: plural.into(),
            singular: String::new(),
            kind: kind.into(),
            namespaced,
            custom: false,
            verbs: verbs.to_vec(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: Vec::new(),
        }
    }

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
                    "status" | "approval" | "ephemeralcontainers" | "resize" => {
                        (&info.gvk.kind, &["get", "patch", "update"])
                    }
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

/// The rank of a version among versions with the same priority: stable before beta before alpha,
/// higher before lower, other names last.
fn rank(version: &str) -> Option<(u32, u32, u32)> {
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

    fn aggregated(group: &str, version: &str, priorities: (i64, i64)) -> AggregatedVersion {
        AggregatedVersion {
            group: group.into(),
            version: version.into(),
            group_priority: priorities.0,
            version_priority: priorities.1,
            discovered: Discovered::default(),
        }
    }

    fn versions(catalog: &Catalog, group: &str) -> Vec<String> {
        let found = catalog.0.iter().find(|found| found.name == group);
        let versions = found.into_iter().flat_map(|found| &found.versions);
        versions.map(|(version, _)| version.clone()).collect()
    }

    #[test]
    fn stable_versions_are_preferred() {
        let names = [
            "v1alpha2", "v1", "v10", "v2beta1", "v2", "later", "v1beta10", "v1beta9",
        ];
        let all = names.map(|name| aggregated("g", name, (1, 1))).into();
        let catalog = Catalog::new(&[], false, all);
        assert_eq!(
            versions(&catalog, "g"),
            [
                "v10", "v2", "v1", "v2beta1", "v1beta10", "v1beta9", "v1alpha2", "later"
            ]
        );
    }

    #[test]
    fn groups_and_versions_are_ordered_by_priority() {
        let all = vec![
            aggregated("low.example.com", "v1", (1, 1)),
            aggregated("high.example.com", "v1", (19_000, 1)),
            aggregated("high.example.com", "v2", (1, 5)),
        ];
        let kinds: Vec<_> = kind::BUILTIN.iter().cloned().map(Arc::new).collect();
        let catalog = Catalog::new(&kinds, false, all);
        let names: Vec<&str> = catalog.0.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(
            names[..4],
            ["apiregistration.k8s.io", "high.example.com", "", "apps"]
        );
        assert_eq!(names.last(), Some(&"low.example.com"));
        assert_eq!(versions(&catalog, "high.example.com"), ["v2", "v1"]);
    }
}
