//! The APIServices of the built-in groups. The API server creates the APIServices of custom groups.

use serde_json::{Value, json};

/// Group, version, and their priorities in Kubernetes.
const SERVED: &[(&str, &str, i64, i64)] = &[
    ("", "v1", 18_000, 1),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("apps", "v1", 17_800, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("storagemigration.k8s.io", "v1", 15_800, 15),
];

/// The priorities of a built-in version: the priority of its group, and the priority of the version
/// within the group.
#[must_use]
pub fn api_service_priorities(group: &str, version: &str) -> Option<(i64, i64)> {
    let is_version = |served: &&(&str, &str, i64, i64)| (served.0, served.1) == (group, version);
    let found = SERVED.iter().find(is_version)?;
    Some((found.2, found.3))
}

/// The APIServices of a new cluster.
pub(super) fn initial() -> Vec<Value> {
    let service = |(group, version, minimum, priority): &(&str, &str, i64, i64)| {
        json!({
            "metadata": {
                "name": format!("{version}.{group}"),
                "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
            },
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": minimum,
                "versionPriority": priority,
            },
        })
    };
    SERVED.iter().map(service).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn every_stored_group_has_an_api_service() {
        for view in Kinds::builtin().views() {
            let gvk = &view.info.gvk;
            let known = SERVED
                .iter()
                .any(|(group, version, ..)| (gvk.group == *group) && gvk.version == *version);
            assert_eq!(known, gvk.group != "apiregistration.k8s.io", "{gvk}");
        }
    }
}
