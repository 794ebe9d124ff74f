//! The stored status of a Deployment.

use serde::Deserialize;
use serde_json::{Value, json};

use super::condition::Condition;

/// Counts and conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// The number of pods.
    pub(crate) replicas: i64,
    /// The number of pods with the current template.
    pub(crate) updated_replicas: i64,
    /// The number of ready pods.
    pub(crate) ready_replicas: i64,
    /// The number of available pods.
    pub(crate) available_replicas: i64,
    /// The number of pods that are missing or unavailable.
    pub(crate) unavailable_replicas: i64,
    /// The number of pods in deletion.
    pub(crate) terminating_replicas: Option<i64>,
    /// The number of hash collisions.
    pub(crate) collision_count: Option<i64>,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
}

impl Status {
    /// Returns the `status` of a merge patch. As in Kubernetes, counts of zero are
    /// omitted.
    pub(crate) fn patch(&self) -> Value {
        let count = |count: i64| (count != 0).then_some(count);
        json!({
            "observedGeneration": count(self.observed_generation),
            "replicas": count(self.replicas),
            "updatedReplicas": count(self.updated_replicas),
            "readyReplicas": count(self.ready_replicas),
            "availableReplicas": count(self.available_replicas),
            "unavailableReplicas": count(self.unavailable_replicas),
            "terminatingReplicas": self.terminating_replicas,
            "collisionCount": self.collision_count,
            "conditions": (!self.conditions.is_empty()).then_some(&self.conditions),
        })
    }
}
