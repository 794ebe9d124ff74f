//! The answers of a server's discovery, in both forms, and the kinds they list.

use std::sync::Arc;

use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde::Deserialize;

/// A kind that the cluster serves, and its short names.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) info: Arc<KindInfo>,
    short_names: Vec<String>,
}

impl Served {
    pub(super) fn is_called(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let (name, group) = word.split_once('.').unwrap_or((&word, ""));
        self.info.is_called(&word)
            || (self.short_names.iter().any(|short| short == name)
                && (group.is_empty() || group == self.info.gvk.group))
    }
}

fn served(
    (group, version, kind): (&str, &str, &str),
    (plural, singular): (&str, &str),
    namespaced: bool,
    subresources: &[&str],
    short_names: Vec<String>,
) -> Served {
    let info = KindInfo {
        gvk: Gvk {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: kind.to_owned().into(),
        },
        plural: plural.to_owned().into(),
        singular: if singular.is_empty() {
            kind.to_lowercase()
        } else {
            singular.to_owned()
        }
        .into(),
        // Short names known only at run time are kept beside.
        short_names: Words::default(),
        categories: Words::default(),
        scope: if namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        },
        subresources: subresources.iter().map(|name| (*name).to_owned()).collect(),
        list_kind: None,
    };
    Served {
        info: Arc::new(info),
        short_names,
    }
}

#[derive(Deserialize)]
pub(super) struct Aggregated {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: GroupMeta,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

#[derive(Deserialize, Default)]
struct GroupMeta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(default)]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Deserialize, Default)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct AggregatedSubresource {
    subresource: String,
}

impl Aggregated {
    /// Versions come newest and preferred first: a kind's first one is the one
    /// meant by its name alone.
    pub(super) fn served(self) -> Vec<Served> {
        let mut all: Vec<Served> = Vec::new();
        for group in self.items {
            for version in group.versions {
                for resource in version.resources {
                    let subresources: Vec<&str> = resource
                        .subresources
                        .iter()
                        .map(|sub| sub.subresource.as_str())
                        .collect();
                    all.push(served(
                        (
                            &group.metadata.name,
                            &version.version,
                            &resource.response_kind.kind,
                        ),
                        (&resource.resource, &resource.singular_resource),
                        resource.scope == "Namespaced",
                        &subresources,
                        resource.short_names,
                    ));
                }
            }
        }
        all
    }
}

#[derive(Deserialize)]
pub(super) struct CoreVersions {
    #[serde(default)]
    pub(super) versions: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Groups {
    #[serde(default)]
    pub(super) groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

impl Group {
    /// Group and version, the preferred one first.
    pub(super) fn versions(self) -> Vec<String> {
        let preferred = self.preferred_version.into_iter();
        let mut names: Vec<String> = Vec::new();
        for GroupVersion { group_version } in preferred.chain(self.versions) {
            if !names.contains(&group_version) {
                names.push(group_version);
            }
        }
        names
    }
}

#[derive(Deserialize)]
pub(super) struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    short_names: Vec<String>,
}

impl Resources {
    pub(super) fn served(self, group_version: &str) -> Vec<Served> {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let subresources_of = |plural: &str| -> Vec<&str> {
            self.resources
                .iter()
                .filter_map(|resource| resource.name.strip_prefix(plural)?.strip_prefix('/'))
                .collect()
        };
        self.resources
            .iter()
            .filter(|resource| !resource.name.contains('/'))
            .map(|resource| {
                served(
                    (group, version, &resource.kind),
                    (&resource.name, &resource.singular_name),
                    resource.namespaced,
                    &subresources_of(&resource.name),
                    resource.short_names.clone(),
                )
            })
            .collect()
    }
}
