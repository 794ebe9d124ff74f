//! The status of a StatefulSet.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::StatefulSet;
use crate::workload::{Phase, PodFacts};

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
    /// Computes the status from the pods.
    pub(super) fn of(
        set: &StatefulSet,
        pods: &[Arc<PodFacts>],
        (current, update): (&str, &str),
        collisions: i64,
        now: Timestamp,
    ) -> Self {
        let count = |test: &dyn Fn(&PodFacts) -> bool| {
            let matching = pods.iter().filter(|pod| test(pod)).count();
            i64::try_from(matching).unwrap_or(i64::MAX)
        };
        let ready = |pod: &PodFacts| pod.phase == Phase::Running && pod.is_ready();
        let seconds = set.spec.min_ready_seconds;
        Self {
            observed_generation: set.meta.generation,
            replicas: count(&|_| true),
            ready_replicas: count(&ready),
            available_replicas: count(&|pod| ready(pod) && pod.is_available(seconds, now)),
            current_replicas: count(&|pod| !pod.deleting && pod.revision() == current),
            updated_replicas: count(&|pod| !pod.deleting && pod.revision() == update),
            current_revision: current.to_owned(),
            update_revision: update.to_owned(),
            collision_count: Some(collisions),
            conditions: set.status.conditions.clone(),
        }
    }

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
