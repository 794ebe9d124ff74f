//! Computes the status of a DaemonSet from its pods.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    facts::DaemonSet,
    nodes::{Nodes, by_node, wanted},
    status::Status,
};
use crate::pod_facts::PodFacts;

/// Computes the status from the oldest pod of each node.
pub(super) fn status(
    set: &DaemonSet,
    nodes: &Nodes,
    pods: &[Arc<PodFacts>],
    hash: &str,
    collisions: Option<i64>,
    now: Timestamp,
) -> Status {
    let wanted = wanted(set, nodes);
    let mut status = Status {
        observed_generation: set.meta.generation,
        desired_number_scheduled: wanted.len(),
        collision_count: collisions,
        ..Status::default()
    };
    for (node, pods) in by_node(pods) {
        if !wanted.contains(node) {
            status.number_misscheduled += usize::from(nodes.contains_key(node));
            continue;
        }
        let Some(pod) = pods.first() else { continue };
        let available = pod.is_available(set.spec.min_ready_seconds, now);
        status.current_number_scheduled += 1;
        status.number_ready += usize::from(pod.is_ready());
        status.number_available += usize::from(available);
        status.updated_number_scheduled += usize::from(set.is_updated(pod, hash));
    }
    let available = status.number_available;
    status.number_unavailable = wanted.len().saturating_sub(available);
    status
}
