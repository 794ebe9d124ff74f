//! The stored status of a set.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Counts and conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The number of active pods.
    pub(crate) replicas: usize,
    /// The number of pods with all labels of the template.
    pub(crate) fully_labeled_replicas: usize,
    /// The number of ready pods.
    pub(crate) ready_replicas: usize,
    /// The number of available pods.
    pub(crate) available_replicas: usize,
    /// The number of pods in deletion.
    pub(crate) terminating_replicas: Option<usize>,
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `True`, `False`, `Unknown`.
    pub(crate) status: String,
    /// The time at which the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<String>,
    /// The reason in CamelCase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// The human-readable message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

impl Status {
    /// Returns the `status` of a merge patch. As in Kubernetes, counts of zero are
    /// omitted.
    pub(crate) fn patch(&self) -> Value {
        let count = |count: usize| (count > 0).then_some(count);
        json!({
            "replicas": self.replicas,
            "fullyLabeledReplicas": count(self.fully_labeled_replicas),
            "readyReplicas": count(self.ready_replicas),
            "availableReplicas": count(self.available_replicas),
            "terminatingReplicas": self.terminating_replicas,
            "observedGeneration": self.observed_generation,
            "conditions": (!self.conditions.is_empty()).then_some(&self.conditions),
        })
    }
}
