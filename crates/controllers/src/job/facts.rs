//! What the Job controller needs to know of a pod, read once from the object.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use longshore_client::{Item, OwnerReference, kinds};
use serde::Deserialize;

use super::names;

/// Where a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Pending, Running or Unknown: not finished.
    Unfinished {
        /// Whether containers have been started.
        running: bool,
    },
    /// All containers ended well.
    Succeeded,
    /// A container failed, or the pod was ended from outside.
    Failed,
}

/// The pod's controller, when it is a Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The Job's name.
    pub(crate) name: String,
    /// The Job's uid.
    pub(crate) uid: String,
}

/// A container that has ended with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The container's name.
    pub(crate) container: String,
    /// Its exit code.
    pub(crate) code: i32,
}

/// A pod as the Job controller sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodFacts {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion, where it is a number.
    pub(crate) version: Option<u64>,
    /// The Job it belongs to.
    pub(crate) owner: Option<Owner>,
    /// Phase.
    pub(crate) phase: Phase,
    /// Deletion has begun, or has been asked for.
    pub(crate) deleting: bool,
    /// It is going, and nobody will report its end: it never had a node, or
    /// was deleted by force.
    pub(crate) lost: bool,
    /// Carries the finalizer by which it is counted.
    pub(crate) tracked: bool,
    /// Condition Ready is True.
    pub(crate) ready: bool,
    /// Completion index, for Indexed Jobs.
    pub(crate) index: Option<u32>,
    /// Restarts of all containers.
    pub(crate) restarts: i64,
    /// Failures of its index before it.
    pub(crate) index_failures: i64,
    /// Failures of its index before it that the policy ignored.
    pub(crate) index_ignored: i64,
    /// When it was made.
    pub(crate) created: Option<Timestamp>,
    /// When its last container ended.
    pub(crate) finished: Option<Timestamp>,
    /// Ends of its containers with a code other than 0.
    pub(crate) exits: Vec<Exit>,
    /// Type and status of its conditions.
    pub(crate) conditions: Vec<(String, String)>,
}

/// What tells whether a pod is a Job's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ties {
    owner_references: Vec<OwnerReference>,
    finalizers: Vec<String>,
}

impl PodFacts {
    /// Failures of its index before it, ignored or not.
    pub(crate) fn tries(&self) -> i64 {
        self.index_failures.saturating_add(self.index_ignored)
    }

    /// Whether a pod is a Job's, or waits to be counted by one: found without
    /// reading the whole pod. One that cannot be read is taken for such.
    pub(crate) fn concern(item: &Item<kinds::Pod>) -> bool {
        let Ok(ties) = item.field::<Ties>(&["metadata"]) else {
            return true;
        };
        let ties = ties.unwrap_or_default();
        !ties.owner_references.is_empty() || !ties.finalizers.is_empty()
    }

    /// Reads them from a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        let status = pod.status.as_ref();
        let annotation = |key: &str| meta.annotations.as_ref().and_then(|map| map.get(key));
        let count = |key: &str| {
            annotation(key)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        let conditions: Vec<(String, String)> = status
            .and_then(|status| status.conditions.as_ref())
            .map(|list| {
                list.iter()
                    .map(|c| (c.type_.clone(), c.status.clone()))
                    .collect()
            })
            .unwrap_or_default();
        let containers = || -> Vec<&ContainerStatus> {
            status
                .map(|status| {
                    let init = status.init_container_statuses.iter().flatten();
                    status
                        .container_statuses
                        .iter()
                        .flatten()
                        .chain(init)
                        .collect()
                })
                .unwrap_or_default()
        };
        let ended = || {
            containers().into_iter().filter_map(|container| {
                let state = container.state.as_ref()?.terminated.as_ref()?;
                Some((container, state))
            })
        };
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta
                .resource_version
                .as_ref()
                .and_then(|text| text.parse().ok()),
            owner: meta
                .owner_references
                .iter()
                .flatten()
                .find(|owner| owner.controller == Some(true))
                .filter(|owner| owner.kind == "Job" && owner.api_version.starts_with("batch/"))
                .map(|owner| Owner {
                    name: owner.name.clone(),
                    uid: owner.uid.clone(),
                }),
            phase: match status.and_then(|status| status.phase.as_deref()) {
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Running") => Phase::Unfinished { running: true },
                _ => Phase::Unfinished { running: false },
            },
            deleting: meta.deletion_timestamp.is_some(),
            lost: meta.deletion_timestamp.is_some()
                && (meta.deletion_grace_period_seconds == Some(0)
                    || pod
                        .spec
                        .as_ref()
                        .is_none_or(|spec| spec.node_name.is_none())),
            tracked: meta
                .finalizers
                .iter()
                .flatten()
                .any(|name| name == names::FINALIZER),
            ready: conditions
                .iter()
                .any(|(kind, status)| kind == "Ready" && status == "True"),
            index: annotation(names::INDEX).and_then(|text| text.parse().ok()),
            restarts: containers()
                .iter()
                .map(|c| i64::from(c.restart_count))
                .sum(),
            index_failures: count(names::INDEX_FAILURES),
            index_ignored: count(names::INDEX_IGNORED),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            finished: ended()
                .filter_map(|(_, state)| state.finished_at.as_ref())
                .map(|time| time.0)
                .max(),
            exits: ended()
                .filter(|(_, state)| state.exit_code != 0)
                .map(|(c, state)| Exit {
                    container: c.name.clone(),
                    code: state.exit_code,
                })
                .collect(),
            conditions,
        }
    }

    /// Whether it has neither finished nor begun to go.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Unfinished { .. }) && !self.deleting
    }

    /// Whether it is on its way out but has not finished.
    pub(crate) fn is_terminating(&self) -> bool {
        matches!(self.phase, Phase::Unfinished { .. }) && self.deleting
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn reads_a_failed_pod() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {
                "namespace": "a", "name": "train-3-abcde", "uid": "u1", "resourceVersion": "17",
                "annotations": {
                    "batch.kubernetes.io/job-completion-index": "3",
                    "batch.kubernetes.io/job-index-failure-count": "2"
                },
                "finalizers": ["batch.kubernetes.io/job-tracking"],
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j1", "controller": true}
                ]
            },
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [
                    {"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 4,
                     "state": {"terminated": {"exitCode": 42, "finishedAt": "2026-01-02T03:04:05Z"}}},
                    {"name": "side", "image": "", "imageID": "", "ready": false, "restartCount": 1,
                     "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-02T03:04:04Z"}}}
                ]
            }
        }))
        .unwrap();
        let facts = PodFacts::of(&pod);
        assert_eq!(facts.phase, Phase::Failed);
        assert_eq!(
            facts.owner,
            Some(Owner {
                name: "train".into(),
                uid: "j1".into()
            })
        );
        assert_eq!(
            (facts.index, facts.index_failures, facts.restarts),
            (Some(3), 2, 5)
        );
        assert!(facts.tracked && !facts.ready && !facts.deleting && !facts.is_active());
        assert_eq!(
            facts.finished,
            Some("2026-01-02T03:04:05Z".parse().unwrap())
        );
        assert_eq!(
            facts.exits,
            [Exit {
                container: "main".into(),
                code: 42
            }]
        );
        assert_eq!(facts.version, Some(17));
    }

    #[test]
    fn an_owner_of_another_kind_is_none() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "x", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r1", "controller": true}
            ]}
        }))
        .unwrap();
        let facts = PodFacts::of(&pod);
        assert_eq!(facts.owner, None);
        assert!(facts.is_active());
    }
}
