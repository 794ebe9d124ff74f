//! The order in which surplus pods are deleted, as in Kubernetes.

use crate::pod_facts::PodFacts;
use std::{
    cmp::{Ordering, Reverse},
    collections::HashMap,
};

use jiff::Timestamp;

/// Returns the pods to delete first. `related` are the pods of all sets of the same
/// Deployment. Pods that share a node with many of them are deleted before others.
pub(crate) fn surplus<'a>(
    pods: &[&'a PodFacts],
    related: &[&PodFacts],
    count: usize,
    now: Timestamp,
) -> Vec<&'a PodFacts> {
    let mut on_node: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let rank = |pod: &PodFacts| on_node.get(pod.node.as_str()).copied().unwrap_or(0);
    let mut pods = pods.to_vec();
    // Sorts equal pods in a stable order, because the set's pods come from a map.
    pods.sort_by(|a, b| a.uid.cmp(&b.uid));
    pods.sort_by(|a, b| {
        let unassigned = |pod: &PodFacts| !pod.node.is_empty();
        unassigned(a)
            .cmp(&unassigned(b))
            .then_with(|| a.phase.cmp(&b.phase))
            .then_with(|| a.ready.is_some().cmp(&b.ready.is_some()))
            .then_with(|| a.cost.cmp(&b.cost))
            .then_with(|| rank(b).cmp(&rank(a)))
            .then_with(|| match (a.ready, b.ready) {
                (Some(first), Some(second)) => younger((first, a), (second, b), now),
                _ => Ordering::Equal,
            })
            .then_with(|| Reverse(a.restarts).cmp(&Reverse(b.restarts)))
            .then_with(|| younger((a.created, a), (b.created, b), now))
    });
    pods.truncate(count);
    pods
}

type Dated<'a> = (Option<Timestamp>, &'a PodFacts);

/// Pods without a time come before pods with a time, then pods with a later time come first,
/// compared in powers of two of the age. Pods of about the same age are sorted by UID, which is an
/// arbitrary order.
fn younger((a, first): Dated<'_>, (b, second): Dated<'_>, now: Timestamp) -> Ordering {
    let rank = |time: Timestamp| {
        let age = u128::try_from(now.duration_since(time).as_nanos());
        age.ok().and_then(u128::checked_ilog2)
    };
    match (a, b) {
        (a, b) if a == b => Ordering::Equal,
        (Some(a), Some(b)) => rank(a)
            .cmp(&rank(b))
            .then_with(|| first.uid.cmp(&second.uid)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}
