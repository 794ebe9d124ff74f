//! The fields of a pod that the Job controller reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{Item, OwnerReference, kinds};
use longshore_model::meta::COMPLETION_INDEX;
use serde::Deserialize;

use super::names;
use crate::pod_fields::PodFields;

/// The phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Pending, Running or Unknown.
    Unfinished {
        /// True if the containers have started.
        running: bool,
    },
    /// All containers succeeded.
    Succeeded,
    /// A container failed, or the pod was terminated.
    Failed,
}

/// The controller of the pod, if it is a Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The Job's name.
    pub(crate) name: String,
    /// The Job's uid.
    pub(crate) uid: String,
}

/// The exit code of a terminated container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The container's name.
    pub(crate) container: String,
    /// The container's exit code.
    pub(crate) code: i32,
}

/// The fields of a pod that the Job controller reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PodFacts {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
    /// The resourceVersion, if it is a number.
    pub(crate) version: Option<u64>,
    /// The Job of the pod.
    pub(crate) owner: Option<Owner>,
    /// True if the pod has a controller of another kind.
    pub(crate) is_foreign: bool,
    /// The labels, unless the pod has a controller of another kind.
    pub(crate) labels: BTreeMap<String, String>,
    /// Phase.
    pub(crate) phase: Phase,
    /// True if the pod is being deleted, or its deletion has been requested.
    pub(crate) deleting: bool,
    /// True if the pod is being deleted and no node will report its end, because it was never
    /// scheduled or was force-deleted.
    pub(crate) lost: bool,
    /// True if the pod has the finalizer for counting.
    pub(crate) tracked: bool,
    /// True if the condition Ready is True.
    pub(crate) ready: bool,
    /// The completion index in an Indexed Job.
    pub(crate) index: Option<u32>,
    /// The number of restarts of all containers.
    pub(crate) restarts: i64,
    /// The number of earlier failures of the index.
    pub(crate) index_failures: i64,
    /// The number of earlier failures of the index that the failure policy ignored.
    pub(crate) index_ignored: i64,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// The time at which the last container terminated.
    pub(crate) finished: Option<Timestamp>,
    /// The nonzero exit codes of the containers.
    pub(crate) exits: Vec<Exit>,
    /// The types and statuses of the conditions.
    pub(crate) conditions: Vec<(String, String)>,
}

/// The fields that show whether a pod belongs to a Job.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Ownership {
    owner_references: Vec<OwnerReference>,
    finalizers: Vec<String>,
}

impl PodFacts {
    /// Returns the number of earlier failures of the index, ignored or not.
    pub(crate) fn tries(&self) -> i64 {
        self.index_failures.saturating_add(self.index_ignored)
    }

    /// Returns true if a pod belongs to a Job or waits to be counted by one. Does not decode the
    /// whole pod. A pod that cannot be read counts as relevant.
    pub(crate) fn is_relevant(item: &Item<kinds::Pod>) -> bool {
        let Ok(ownership) = item.field::<Ownership>(&["metadata"]) else {
            return true;
        };
        let ownership = ownership.unwrap_or_default();
        !ownership.owner_references.is_empty() || !ownership.finalizers.is_empty()
    }

    /// Reads a pod.
    pub(crate) fn of(pod: PodFields) -> Self {
        let PodFields {
            metadata: meta,
            spec,
            status,
        } = pod;
        let status = status.unwrap_or_default();
        let annotation = |key: &str| meta.annotations.get(key);
        let count = |key: &str| {
            annotation(key)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        let conditions = status.conditions.iter().flatten();
        let conditions = conditions.map(|c| (c.type_.clone(), c.status.clone()));
        let containers = || {
            let init = status.init_container_statuses.iter().flatten();
            status.container_statuses.iter().flatten().chain(init)
        };
        let ended = || {
            containers().filter_map(|container| {
                let state = container.state.as_ref()?.terminated.as_ref()?;
                Some((container, state))
            })
        };
        let controller = meta.controller();
        let owner = controller
            .filter(|owner| owner.kind == "Job" && owner.api_version.starts_with("batch/"));
        let is_foreign = controller.is_some() && owner.is_none();
        let is_scheduled = spec.is_some_and(|spec| spec.node_name.is_some());
        Self {
            owner: owner.map(|owner| Owner {
                name: owner.name.clone(),
                uid: owner.uid.clone(),
            }),
            version: meta.resource_version.parse().ok(),
            is_foreign,
            phase: match status.phase.as_deref() {
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Running") => Phase::Unfinished { running: true },
                _ => Phase::Unfinished { running: false },
            },
            deleting: meta.deletion_timestamp.is_some(),
            lost: meta.deletion_timestamp.is_some()
                && (meta.deletion_grace_period_seconds == Some(0) || !is_scheduled),
            tracked: meta.finalizers.iter().any(|name| name == names::FINALIZER),
            ready: status.ready().is_some(),
            index: annotation(COMPLETION_INDEX).and_then(|text| text.parse().ok()),
            restarts: containers().map(|c| i64::from(c.restart_count)).sum(),
            index_failures: count(names::INDEX_FAILURES),
            index_ignored: count(names::INDEX_IGNORED),
            created: meta.creation_timestamp,
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
            conditions: conditions.collect(),
            labels: match is_foreign {
                true => BTreeMap::new(),
                false => meta.labels,
            },
            namespace: meta.namespace.unwrap_or_default(),
            name: meta.name,
            uid: meta.uid,
        }
    }

    /// Returns true if the pod has not finished and is not being deleted.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Unfinished { .. }) && !self.deleting
    }

    /// Returns true if the pod is being deleted and has not finished.
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
    fn a_failed_pod_is_read() {
        let pod: PodFields = serde_json::from_value(json!({
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
        let facts = PodFacts::of(pod);
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
    fn an_owner_of_another_kind_is_ignored() {
        let pod: PodFields = serde_json::from_value(json!({
            "metadata": {"name": "x", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r1", "controller": true}
            ]}
        }))
        .unwrap();
        let facts = PodFacts::of(pod);
        assert_eq!(facts.owner, None);
        assert!(facts.is_active());
    }
}
