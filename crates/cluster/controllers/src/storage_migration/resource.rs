//! Finds the kind of a resource by discovery.

use std::sync::Arc;

use longshore_client::{Cluster, Error, View, kinds::Any};
use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde_json::Value;

use super::facts::GroupResource;

/// The verbs that a migration needs, in the order of the error message.
const VERBS: [&str; 3] = ["update", "patch", "list"];

/// The result of the discovery of a resource.
pub(super) enum Found {
    /// The resource is not served.
    Nothing,
    /// The resource's objects can be migrated.
    Kind(View<Any>),
    /// A required verb is not supported. Contains Kubernetes' error message.
    NotMigratable(String),
}

/// Finds a resource in the preferred version of its group, or in another version that serves it.
pub(super) async fn find(cluster: &Cluster, wanted: &GroupResource) -> Result<Found, Error> {
    for version in versions(cluster, &wanted.group).await? {
        let Some(resource) = served(cluster, &version, &wanted.resource).await? else {
            continue;
        };
        let gvk = Gvk::from_api_version(&version, text(&resource["kind"]));
        if !is_migratable(&resource) {
            return Ok(Found::NotMigratable(not_migratable(&gvk, &wanted.resource)));
        }
        let kind = Arc::new(kind(gvk, &resource));
        return Ok(Found::Kind(cluster.view_of::<Any>(kind)));
    }
    Ok(Found::Nothing)
}

/// Returns the versions of a group as `group/version`, the preferred version first.
async fn versions(cluster: &Cluster, group: &str) -> Result<Vec<String>, Error> {
    if group.is_empty() {
        return Ok(vec!["v1".into()]);
    }
    let Some(found) = get(cluster, format!("/apis/{group}")).await? else {
        return Ok(Vec::new());
    };
    let preferred = text(&found["preferredVersion"]["groupVersion"]).to_owned();
    let others = found["versions"].as_array().into_iter().flatten();
    let others = others.map(|version| text(&version["groupVersion"]).to_owned());
    let others = others.filter(|version| *version != preferred);
    let all = std::iter::once(preferred.clone()).chain(others);
    Ok(all.filter(|version| !version.is_empty()).collect())
}

/// Returns the resource with a name in a version.
async fn served(cluster: &Cluster, version: &str, name: &str) -> Result<Option<Value>, Error> {
    let path = match version.contains('/') {
        true => format!("/apis/{version}"),
        false => format!("/api/{version}"),
    };
    let mut found = get(cluster, path).await?.unwrap_or_default();
    let Value::Array(resources) = found["resources"].take() else {
        return Ok(None);
    };
    Ok(resources.into_iter().find(|found| found["name"] == name))
}

async fn get(cluster: &Cluster, path: String) -> Result<Option<Value>, Error> {
    match cluster.proxy().get(path, &[]).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_migratable(resource: &Value) -> bool {
    let verbs = resource["verbs"].as_array();
    VERBS
        .iter()
        .all(|verb| verbs.is_some_and(|verbs| verbs.iter().any(|found| found == verb)))
}

fn not_migratable(gvk: &Gvk, resource: &str) -> String {
    let (group, version) = (&gvk.group, &gvk.version);
    let name = format!("{group}/{version}, Resource={resource}");
    let verbs = VERBS.join(" ");
    format!("resource {name:?} does not support discovery operations: [{verbs}]")
}

fn kind(gvk: Gvk, resource: &Value) -> KindInfo {
    KindInfo {
        gvk,
        plural: text(&resource["name"]).to_owned().into(),
        singular: text(&resource["singularName"]).to_owned().into(),
        short_names: Words::default(),
        categories: Words::default(),
        scope: match resource["namespaced"].as_bool() {
            Some(true) => Scope::Namespaced,
            _ => Scope::Cluster,
        },
        subresources: Words::default(),
        list_kind: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_migration_needs_three_verbs() {
        assert!(is_migratable(
            &json!({"verbs": ["get", "list", "patch", "update"]})
        ));
        assert!(!is_migratable(&json!({"verbs": ["create"]})));
        let gvk = Gvk::from_api_version("authentication.k8s.io/v1", "TokenReview");
        assert_eq!(
            not_migratable(&gvk, "tokenreviews"),
            "resource \"authentication.k8s.io/v1, Resource=tokenreviews\" does not support discovery operations: [update patch list]"
        );
    }
}
