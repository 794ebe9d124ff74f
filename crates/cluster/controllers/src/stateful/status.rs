//! The status of a StatefulSet.

use serde::Deserialize;
use serde_json::{Value, json};

/// Counts, revisions and conditions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// The number of pods.
    pub(crate) replicas: i64,
    /// The number of ready pods.
    pub(crate) ready_replicas: i64,
    /// The number of available pods.
    pub(crate) available_replicas: i64,
    /// The number of pods with the current revision.
    pub(crate) current_replicas: i64,
    /// The number of pods with the update revision.
    pub(crate) updated_replicas: i64,
    /// The revision before the update.
    pub(crate) current_revision: String,
    /// The revision of the template.
    pub(crate) update_revision: String,
    /// The number of hash collisions.
    pub(crate) collision_count: Option<i64>,
    /// Conditions, which other components write.
    pub(crate) conditions: Vec<Value>,
}

impl Status {
    /// Ends an update if all pods have the new revision and are ready.
    pub(super) fn complete(&mut self, replicas: u32) {
        let replicas = i64::from(replicas);
        if self.updated_replicas == replicas
            && self.ready_replicas == replicas
            && self.replicas == replicas
        {
            self.current_replicas = self.updated_replicas;
            self.current_revision.clone_from(&self.update_revision);
        }
    }

    /// Returns the `status` of a merge patch. As in Kubernetes, counts of zero are
    /// omitted, except for the total and the available pods.
    pub(super) fn patch(&self) -> Value {
        let count = |count: i64| (count != 0).then_some(count);
        json!({
            "observedGeneration": self.observed_generation,
            "replicas": self.replicas,
            "readyReplicas": count(self.ready_replicas),
            "availableReplicas": self.available_replicas,
            "currentReplicas": count(self.current_replicas),
            "updatedReplicas": count(self.updated_replicas),
            "currentRevision": self.current_revision,
            "updateRevision": self.update_revision,
            "collisionCount": self.collision_count,
        })
    }
}
