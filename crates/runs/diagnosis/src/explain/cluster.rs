//! Evidence about a run other than its pods and Jobs.

use crate::{
    evidence::{EventEvidence, JobEvidence, QuotaEvidence, WorkloadEvidence},
    fit::Nodes,
};
use longshore_model::ObjectMeta;

/// Further evidence from the cluster: events, nodes and quotas, as far as permissions allow.
/// Empty until the cluster has been queried.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterEvidence {
    /// Events of the run's objects.
    pub events: Vec<EventEvidence>,
    /// The nodes, if listing them is permitted.
    pub nodes: Option<Nodes>,
    /// The namespace's quotas, if listing them is permitted.
    pub quotas: Option<Vec<QuotaEvidence>>,
    /// The Workloads of the run's Jobs, if they wait in a Kueue queue.
    pub workloads: Vec<WorkloadEvidence>,
}

impl ClusterEvidence {
    /// The events about a pod, the newest first.
    pub(super) fn of_pod(&self, meta: &ObjectMeta) -> Vec<&EventEvidence> {
        self.about("Pod", meta)
    }

    /// The events about a Job, the newest first.
    pub(super) fn of_job(&self, meta: &ObjectMeta) -> Vec<&EventEvidence> {
        self.about("Job", meta)
    }

    /// The Workload of a Job, or of the JobSet that owns it.
    pub(super) fn workload_of(&self, job: &JobEvidence) -> Option<&WorkloadEvidence> {
        self.workloads.iter().find(|workload| workload.is_of(job))
    }

    /// The events about deleted pods of a Job, the oldest first.
    pub(super) fn of_pods_named(&self, job: &str) -> Vec<&EventEvidence> {
        let prefix = format!("{job}-");
        let mut found: Vec<_> = self
            .events
            .iter()
            .filter(|event| {
                let about = &event.involved_object;
                about.kind == "Pod" && about.name.starts_with(&prefix)
            })
            .collect();
        found.sort_by_key(|event| event.last_seen());
        found
    }

    fn about(&self, kind: &str, meta: &ObjectMeta) -> Vec<&EventEvidence> {
        let mut found: Vec<_> = self
            .events
            .iter()
            .filter(|event| event.is_about(kind, meta))
            .collect();
        found.sort_by_key(|event| std::cmp::Reverse(event.last_seen()));
        found
    }
}
