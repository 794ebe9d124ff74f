//! Kueue's Workloads, which represent a Job or JobSet in a queue.

use longshore_model::{ObjectMeta, facts::Condition};
use serde::Deserialize;

use super::JobEvidence;

/// A Kueue Workload.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct WorkloadEvidence {
    /// The Workload's metadata.
    pub metadata: ObjectMeta,
    pub(crate) spec: WorkloadSpec,
    pub(crate) status: WorkloadStatus,
}

/// A Workload's spec.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WorkloadSpec {
    pub(crate) active: bool,
}

impl Default for WorkloadSpec {
    fn default() -> Self {
        Self { active: true }
    }
}

/// A Workload's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WorkloadStatus {
    pub(crate) conditions: Vec<Condition>,
}

impl WorkloadEvidence {
    /// Returns true if the Workload represents this Job, or the JobSet that owns the Job.
    #[must_use]
    pub fn is_of(&self, job: &JobEvidence) -> bool {
        let owner = self.metadata.controller();
        owner.is_some_and(|owner| owner.uid == job.queued_uid())
    }

    /// The condition that keeps Kueue from admitting the Workload: no quota is reserved, or an
    /// admission check has not passed yet.
    pub(crate) fn pending(&self) -> Option<&Condition> {
        ["QuotaReserved", "Admitted"].iter().find_map(|kind| {
            let mut conditions = self.status.conditions.iter();
            conditions.find(|condition| condition.kind == *kind && condition.status == "False")
        })
    }
}
