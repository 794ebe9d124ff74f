//! The status of a Deployment, as it is stored.

use serde::Deserialize;
use serde_json::{Value, json};

use super::condition::Condition;

/// Counts and conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The generation that this is the status of.
    pub(crate) observed_generation: i64,
    /// Pods.
    pub(crate) replicas: i64,
    /// Pods of the newest template.
    pub(crate) updated_replicas: i64,
    /// Ready pods.
    pub(crate) ready_replicas: i64,
    /// Available pods.
    pub(crate) available_replicas: i64,
    /// Pods that are missing or not available.
    pub(crate) unavailable_replicas: i64,
    /// Pods in deletion.
    pub(crate) terminating_replicas: Option<i64>,
    /// Hash collisions so far.
    pub(crate) collision_count: Option<i64>,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
}

impl Status {
    /// As the `status` of a merge patch: counts of zero are left out of the
    /// object, as Kubernetes leaves them out.
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
