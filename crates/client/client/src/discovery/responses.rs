//! The discovery responses of API servers, aggregated and not, and the kinds they list.

use std::sync::Arc;

use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde::Deserialize;

/// A kind that the cluster serves, in one version.
#[derive(Debug, Clone)]
pub(super) struct ServedKind {
    pub(super) info: Arc<KindInfo>,
    short_names: Vec<String>,
}

impl ServedKind {
    /// Returns true if `name` is a name of this kind: its singular, plural or short name, with an
    /// optional group, as in `deploy.apps`.
    pub(super) fn has_name(&self, name: &str) -> bool {
        let full_name = name.to_ascii_lowercase();
        let (name, group) = full_name.split_once('.').unwrap_or((&full_name, ""));
        self.info.has_name(&full_name)
            || (self.short_names.iter().any(|short| short == name)
                && (group.is_empty() || group == self.info.gvk.group))
    }
}

fn served_kind(
    (group, version, kind): (&str, &str, &str),
    (plural, singular): (&str, &str),
    namespaced: bool,
    subresources: &[&str],
    short_names: Vec<String>,
) -> ServedKind {
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
        // `ServedKind` has the short names, because the names in `KindInfo` are static.
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
    ServedKind {
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
    /// The kinds in each of their versions. Servers list the preferred version first.
    pub(super) fn kinds(self) -> Vec<ServedKind> {
        let mut all: Vec<ServedKind> = Vec::new();
        for group in self.items {
            for version in group.versions {
                for resource in version.resources {
                    let subresources: Vec<&str> = resource
                        .subresources
                        .iter()
                        .map(|sub| sub.subresource.as_str())
                        .collect();
                    all.push(served_kind(
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
    /// The group versions, such as `apps/v1`, the preferred one first.
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
    /// The kinds of the response for a group version.
    pub(super) fn kinds(self, group_version: &str) -> Vec<ServedKind> {
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
                served_kind(
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
