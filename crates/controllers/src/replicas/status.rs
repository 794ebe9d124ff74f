//! The status of a set, as it is stored.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Counts and conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// Active pods.
    pub(crate) replicas: usize,
    /// Those with all labels of the template.
    pub(crate) fully_labeled_replicas: usize,
    /// Those that are ready.
    pub(crate) ready_replicas: usize,
    /// Those that have been ready long enough.
    pub(crate) available_replicas: usize,
    /// Pods in deletion.
    pub(crate) terminating_replicas: Option<usize>,
    /// The generation that this is the status of.
    pub(crate) observed_generation: i64,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `True`, `False`, `Unknown`.
    pub(crate) status: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<String>,
    /// Why, in a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

impl Status {
    /// As the `status` of a merge patch: counts of zero are left out of the
    /// object, as Kubernetes leaves them out.
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
