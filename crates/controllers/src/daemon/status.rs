//! The status of a DaemonSet.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    facts::DaemonSet,
    nodes::{Nodes, by_node, wanted},
};
use crate::workload::PodFacts;

/// Counts of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// The nodes that should have a pod.
    pub(crate) desired_number_scheduled: usize,
    /// Those that have one.
    pub(crate) current_number_scheduled: usize,
    /// The nodes that have a pod and should not.
    pub(crate) number_misscheduled: usize,
    /// The nodes with a ready pod.
    pub(crate) number_ready: usize,
    /// The nodes with an available pod.
    pub(crate) number_available: usize,
    /// The nodes without an available pod.
    pub(crate) number_unavailable: usize,
    /// The nodes with a pod of the current template.
    pub(crate) updated_number_scheduled: usize,
    /// The number of hash collisions.
    pub(crate) collision_count: Option<i64>,
}

impl Status {
    /// Computes the status from the oldest pod of each node.
    pub(super) fn of(
        set: &DaemonSet,
        nodes: &Nodes,
        pods: &[Arc<PodFacts>],
        hash: &str,
        collisions: Option<i64>,
        now: Timestamp,
    ) -> Self {
        let wanted = wanted(set, nodes);
        let mut status = Self {
            observed_generation: set.meta.generation,
            desired_number_scheduled: wanted.len(),
            collision_count: collisions,
            ..Self::default()
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

    /// Returns the `status` of a merge patch. As in Kubernetes, some counts of zero are
    /// omitted.
    pub(super) fn patch(&self) -> Value {
        let count = |count: usize| (count > 0).then_some(count);
        json!({
            "observedGeneration": self.observed_generation,
            "desiredNumberScheduled": self.desired_number_scheduled,
            "currentNumberScheduled": self.current_number_scheduled,
            "numberMisscheduled": self.number_misscheduled,
            "numberReady": self.number_ready,
            "numberAvailable": count(self.number_available),
            "numberUnavailable": count(self.number_unavailable),
            "updatedNumberScheduled": count(self.updated_number_scheduled),
            "collisionCount": self.collision_count,
        })
    }
}
