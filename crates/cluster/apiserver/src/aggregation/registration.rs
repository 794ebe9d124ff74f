//! The APIServices of the versions that CustomResourceDefinitions define.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service::ApiService;

/// The priority of a custom group among groups.
pub(crate) const GROUP_PRIORITY: i64 = 1000;
/// The priority of a version of a custom group.
pub(crate) const VERSION_PRIORITY: i64 = 100;

/// A change of an APIService.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create(Value),
    /// Replaces the spec of the object with a name.
    Update(String, Value),
    Delete(String),
}

/// The changes that lead to an APIService for each group and version. APIServices that the server
/// does not manage remain.
pub(super) fn changes(existing: &[ApiService], wanted: &BTreeSet<(String, String)>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (group, version) in wanted {
        let name = format!("{version}.{group}");
        let spec = json!({
            "group": group,
            "version": version,
            "groupPriorityMinimum": GROUP_PRIORITY,
            "versionPriority": VERSION_PRIORITY,
        });
        match existing.iter().find(|service| service.name == name) {
            None => changes.push(Change::Create(json!({
                "metadata": {
                    "name": name,
                    "labels": {"kube-aggregator.kubernetes.io/automanaged": "true"},
                },
                "spec": spec,
            }))),
            Some(service) if service.is_managed && !has_wanted_spec(service) => {
                changes.push(Change::Update(name, spec));
            }
            Some(_) => {}
        }
    }
    let key = |service: &ApiService| (service.group.clone(), service.version.clone());
    let superfluous = existing
        .iter()
        .filter(|service| service.is_managed && !wanted.contains(&key(service)));
    changes.extend(superfluous.map(|service| Change::Delete(service.name.clone())));
    changes
}

fn has_wanted_spec(service: &ApiService) -> bool {
    service.backend.is_none()
        && service.group_priority == GROUP_PRIORITY
        && service.version_priority == VERSION_PRIORITY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, is_managed: bool) -> ApiService {
        let (version, group) = name.split_once('.').unwrap_or((name, ""));
        ApiService {
            name: name.into(),
            group: group.into(),
            version: version.into(),
            group_priority: GROUP_PRIORITY,
            version_priority: VERSION_PRIORITY,
            backend: None,
            is_available: true,
            is_managed,
        }
    }

    #[test]
    fn each_version_of_a_definition_has_an_api_service() {
        let wanted = ["v1", "v2"].map(|version| ("example.com".to_owned(), version.to_owned()));
        let wanted = BTreeSet::from(wanted);
        let existing = [service("v1.example.com", true), service("v1.apps", false)];
        let planned = changes(&existing, &wanted);
        assert!(matches!(&planned[..], [Change::Create(made)]
            if made["metadata"]["name"] == "v2.example.com"));
        assert_eq!(
            changes(&existing, &BTreeSet::new()),
            [Change::Delete("v1.example.com".into())]
        );
    }

    #[test]
    fn only_managed_api_services_are_corrected() {
        let wanted = BTreeSet::from([("example.com".to_owned(), "v1".to_owned())]);
        let mut changed = service("v1.example.com", true);
        changed.group_priority = 5;
        let planned = changes(&[changed.clone()], &wanted);
        assert!(matches!(&planned[..], [Change::Update(name, _)] if name == "v1.example.com"));
        changed.is_managed = false;
        assert_eq!(changes(&[changed.clone()], &wanted), []);
        assert_eq!(changes(&[changed], &BTreeSet::new()), []);
    }
}
