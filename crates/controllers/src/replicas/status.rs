//! The status of a set.

use std::time::Duration;

use jiff::Timestamp;
use longshore_model::time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{facts::PodFacts, flavor::Flavor, set::Set};

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

const FAILURE: &str = "ReplicaFailure";

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

/// The status of a set: its active pods, how many are in deletion, and why
/// pods could not be created or deleted.
pub(crate) fn status(
    flavor: &Flavor,
    set: &Set,
    active: &[&PodFacts],
    terminating: usize,
    failure: Option<&str>,
    now: Timestamp,
) -> Status {
    let count = |test: &dyn Fn(&PodFacts) -> bool| active.iter().filter(|pod| test(pod)).count();
    let template = &set.template_labels;
    let has_labels = |pod: &PodFacts| {
        let mut labels = template.iter();
        labels.all(|(key, value)| pod.labels.get(key) == Some(value))
    };
    let mut conditions = set.status.conditions.clone();
    let known = conditions.iter().any(|c| c.kind == FAILURE);
    match failure {
        None => conditions.retain(|c| c.kind != FAILURE),
        Some(_) if known => {}
        Some(message) => conditions.push(Condition {
            kind: FAILURE.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(time::seconds(now)),
            reason: if active.len() < set.replicas {
                "FailedCreate".to_owned()
            } else {
                "FailedDelete".to_owned()
            },
            message: message.to_owned(),
        }),
    }
    Status {
        replicas: active.len(),
        fully_labeled_replicas: count(&has_labels),
        ready_replicas: count(&|pod| pod.ready.is_some()),
        available_replicas: count(&|pod| is_available(pod, set.min_ready_seconds, now)),
        terminating_replicas: flavor.counts_terminating.then_some(terminating),
        observed_generation: set.generation,
        conditions,
    }
}

fn available_at(pod: &PodFacts, min_ready_seconds: u32) -> Option<Timestamp> {
    let wait = Duration::from_secs(min_ready_seconds.into());
    pod.ready??.checked_add(wait).ok()
}

fn is_available(pod: &PodFacts, min_ready_seconds: u32, now: Timestamp) -> bool {
    let ready = pod.ready.is_some();
    ready
        && (min_ready_seconds == 0
            || available_at(pod, min_ready_seconds).is_some_and(|at| at <= now))
}

/// When the next pod will have been ready for long enough.
pub(crate) fn next_check(set: &Set, active: &[&PodFacts], now: Timestamp) -> Option<Duration> {
    if set.min_ready_seconds == 0 {
        return None;
    }
    let times = active.iter();
    let times = times.filter_map(|pod| available_at(pod, set.min_ready_seconds));
    let next = times.filter(|at| *at > now).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}
