//! Computes the status of a StatefulSet from its pods.

use std::sync::Arc;

use jiff::Timestamp;

use super::{facts::StatefulSet, status::Status};
use crate::pod_facts::{Phase, PodFacts};

/// Computes the status from the pods.
pub(super) fn status(
    set: &StatefulSet,
    pods: &[Arc<PodFacts>],
    (current, update): (&str, &str),
    collisions: i64,
    now: Timestamp,
) -> Status {
    let count = |test: &dyn Fn(&PodFacts) -> bool| {
        let matching = pods.iter().filter(|pod| test(pod)).count();
        i64::try_from(matching).unwrap_or(i64::MAX)
    };
    let ready = |pod: &PodFacts| pod.phase == Phase::Running && pod.is_ready();
    let seconds = set.spec.min_ready_seconds;
    Status {
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
