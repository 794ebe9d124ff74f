//! Decides which pods with an old template are replaced.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    facts::DaemonSet,
    manage::Changes,
    nodes::{Nodes, PodsByNode, by_node, wanted},
};
use crate::pod_facts::PodFacts;

/// The pods of a node that are not being deleted.
#[derive(Default)]
struct OnNode<'a> {
    new: Option<&'a Arc<PodFacts>>,
    old: Option<&'a Arc<PodFacts>>,
    /// True if several pods have the same template.
    surplus: bool,
}

impl<'a> OnNode<'a> {
    fn of(set: &DaemonSet, pods: &[&'a Arc<PodFacts>], hash: &str) -> Self {
        let mut found = Self::default();
        for pod in pods.iter().filter(|pod| !pod.deleting) {
            let place = if set.is_updated(pod, hash) {
                &mut found.new
            } else {
                &mut found.old
            };
            found.surplus |= place.replace(pod).is_some();
        }
        found
    }
}

/// Decides for all nodes.
pub(super) fn rollout(
    set: &DaemonSet,
    nodes: &Nodes,
    pods: &[Arc<PodFacts>],
    hash: &str,
    now: Timestamp,
) -> Changes {
    let wanted = wanted(set, nodes);
    let (surge, unavailable) = set.spec.bounds(wanted.len());
    let mut all: PodsByNode<'_> = by_node(pods);
    for node in &wanted {
        all.entry(node).or_default();
    }
    let on_nodes: BTreeMap<&str, OnNode<'_>> = all
        .iter()
        .map(|(node, pods)| (*node, OnNode::of(set, pods, hash)))
        .collect();
    let available = |pod: &PodFacts| pod.is_available(set.spec.min_ready_seconds, now);
    let mut changes = Changes::default();
    if surge == 0 {
        replace(&mut changes, on_nodes.into_values(), unavailable, available);
    } else {
        let is_wanted = |node: &str| wanted.contains(node);
        add(&mut changes, &on_nodes, surge, is_wanted, available);
    }
    changes
}

/// Without surge: deletes old pods, so that no more than `limit` nodes are without an
/// available pod. Old pods that are not available do not count.
fn replace<'a>(
    changes: &mut Changes,
    nodes: impl Iterator<Item = OnNode<'a>>,
    limit: usize,
    available: impl Fn(&PodFacts) -> bool,
) {
    let (mut unavailable, mut candidates) = (0_usize, Vec::new());
    for node in nodes {
        match (node.new, node.old) {
            _ if node.surplus => unavailable += 1,
            (Some(new), None) => unavailable += usize::from(!available(new)),
            (None, Some(old)) if available(old) => candidates.push(Arc::clone(old)),
            (None, Some(old)) => {
                changes.delete.push(Arc::clone(old));
                unavailable += 1;
            }
            (None, None) | (Some(_), Some(_)) => unavailable += 1,
        }
    }
    let left = limit.saturating_sub(unavailable);
    changes.delete.extend(candidates.into_iter().take(left));
}

/// With surge: creates a new pod alongside an available old one on up to `limit` nodes, and deletes
/// the old one when the new one is available.
fn add(
    changes: &mut Changes,
    nodes: &BTreeMap<&str, OnNode<'_>>,
    limit: usize,
    is_wanted: impl Fn(&str) -> bool,
    available: impl Fn(&PodFacts) -> bool,
) {
    let (mut surging, mut available_nodes) = (0_usize, 0_usize);
    let (mut candidates, mut unwanted) = (Vec::new(), Vec::new());
    for (name, node) in nodes {
        if node.surplus {
            surging += 1;
            continue;
        }
        let serving = node.old.or(node.new);
        available_nodes += usize::from(serving.is_some_and(|pod| available(pod)));
        match (node.new, node.old) {
            (_, None) => {}
            (None, Some(old)) => match (available(old), is_wanted(name)) {
                (false, false) => changes.delete.push(Arc::clone(old)),
                (false, true) => changes.create.push((*name).to_owned()),
                (true, false) => unwanted.push(Arc::clone(old)),
                (true, true) => candidates.push((*name).to_owned()),
            },
            (Some(new), Some(old)) => {
                if available(new) {
                    changes.delete.push(Arc::clone(old));
                } else {
                    surging += 1;
                }
            }
        }
    }
    let desired = nodes.keys().filter(|name| is_wanted(name)).count();
    let spare = available_nodes.saturating_sub(desired);
    changes.delete.extend(unwanted.into_iter().take(spare));
    let left = limit.saturating_sub(surging);
    changes.create.extend(candidates.into_iter().take(left));
}
