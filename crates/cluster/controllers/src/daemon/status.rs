//! The status of a DaemonSet.

use serde::Deserialize;
use serde_json::{Value, json};

/// Counts of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// The nodes that should have a pod.
    pub(crate) desired_number_scheduled: usize,
    /// The nodes that should have a pod and have one.
    pub(crate) current_number_scheduled: usize,
    /// The nodes that have a pod, but should not have one.
    pub(crate) number_misscheduled: usize,
    /// The nodes with a ready pod.
    pub(crate) number_ready: usize,
    /// The nodes with an available pod.
    pub(crate) number_available: usize,
    /// The nodes without an available pod.
    pub(crate) number_unavailable: usize,
    /// The nodes with a pod of the current template.
    pub(crate) updated_number_scheduled: usize,
    /// The number of hash collisions.
    pub(crate) collision_count: Option<i64>,
}

impl Status {
    /// Returns the `status` of a merge patch. As in Kubernetes, some counts of zero are
    /// omitted.
    pub(super) fn patch(&self) -> Value {
        let count = |count: usize| (count > 0).then_some(count);
        json!({
            "observedGeneration": self.observed_generation,
            "desiredNumberScheduled": self.desired_number_scheduled,
            "currentNumberScheduled": self.current_number_scheduled,
            "numberMisscheduled": self.number_misscheduled,
            "numberReady": self.number_ready,
            "numberAvailable": count(self.number_available),
            "numberUnavailable": count(self.number_unavailable),
            "updatedNumberScheduled": count(self.updated_number_scheduled),
            "collisionCount": self.collision_count,
        })
    }
}
