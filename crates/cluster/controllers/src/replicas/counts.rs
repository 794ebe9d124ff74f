//! Computes the status of a set from its pods.

use jiff::Timestamp;
use longshore_model::time;

use super::{
    flavor::Flavor,
    set::Set,
    status::{Condition, Status},
};
use crate::pod_facts::PodFacts;

const FAILURE: &str = "ReplicaFailure";

/// Computes the status from the active pods, the number of pods in deletion, and
/// the reason why pods could not be created or deleted.
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
        ready_replicas: count(&|pod| pod.is_ready()),
        available_replicas: count(&|pod| pod.is_available(set.min_ready_seconds, now)),
        terminating_replicas: flavor.counts_terminating.then_some(terminating),
        observed_generation: set.generation,
        conditions,
    }
}
