//! Computes the status of a set from its pods.

use std::time::Duration;

use jiff::Timestamp;
use longshore_model::time;

use super::{
    facts::PodFacts,
    flavor::Flavor,
    set::Set,
    status::{Condition, Status},
};

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

/// Returns when the next pod will have been ready for long enough.
pub(crate) fn next_check(set: &Set, active: &[&PodFacts], now: Timestamp) -> Option<Duration> {
    if set.min_ready_seconds == 0 {
        return None;
    }
    let times = active.iter();
    let times = times.filter_map(|pod| available_at(pod, set.min_ready_seconds));
    let next = times.filter(|at| *at > now).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}
