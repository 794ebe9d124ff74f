//! Workloads: what Kueue makes of a Job or a JobSet that waits in a queue.

use serde::Deserialize;

use super::{Condition, JobEvidence, Meta};

/// A Workload of Kueue's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kueue's own")]
pub struct WorkloadEvidence {
    pub metadata: Meta,
    pub spec: WorkloadSpec,
    pub status: WorkloadStatus,
}

/// A Workload's spec.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kueue's own")]
pub struct WorkloadSpec {
    pub active: bool,
}

impl Default for WorkloadSpec {
    fn default() -> Self {
        Self { active: true }
    }
}

/// A Workload's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are Kueue's own")]
pub struct WorkloadStatus {
    pub conditions: Vec<Condition>,
}

impl WorkloadEvidence {
    /// Whether it is of this Job, or of the JobSet that makes the Job.
    #[must_use]
    pub fn is_of(&self, job: &JobEvidence) -> bool {
        let mut owners = self.metadata.owner_references.iter();
        owners.any(|owner| owner.controller && owner.uid == job.queued_uid())
    }

    /// Why Kueue has not admitted it: no quota is reserved for it, or a check is not
    /// passed yet.
    #[must_use]
    pub fn pending(&self) -> Option<&Condition> {
        ["QuotaReserved", "Admitted"].iter().find_map(|kind| {
            let mut conditions = self.status.conditions.iter();
            conditions.find(|condition| condition.kind == *kind && condition.status == "False")
        })
    }
}
