//! Decides where pods are missing, and which pods are surplus.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    facts::DaemonSet,
    nodes::{Eligible, Nodes, PodsByNode, by_node, eligible},
};
use crate::pod_facts::{Phase, PodFacts};

/// The pods to create and to delete.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// The nodes that get a pod.
    pub(super) create: Vec<String>,
    /// The pods to delete.
    pub(super) delete: Vec<Arc<PodFacts>>,
    /// The pods that ended, with the name of their node. They are also in `delete`.
    pub(super) ended: Vec<(Arc<PodFacts>, String)>,
    /// The time until a failed pod may be replaced.
    pub(super) wait: Option<Duration>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

/// Decides for all nodes. `failed` returns the delay before a failed pod on a node is replaced.
pub(super) fn manage(
    set: &DaemonSet,
    nodes: &Nodes,
    pods: &[Arc<PodFacts>],
    hash: &str,
    failed: &mut dyn FnMut(&str) -> Option<Duration>,
    now: Timestamp,
) -> Changes {
    let mut changes = Changes::default();
    let by_node = by_node(pods);
    for (name, node) in nodes {
        let on_node = by_node.get(name.as_str());
        match (eligible(set, name, node), on_node) {
            (Eligible::Yes, None) => changes.create.push(name.clone()),
            (Eligible::No, Some(on_node)) => {
                let pods = on_node.iter().filter(|pod| !pod.deleting);
                changes.delete.extend(pods.map(|pod| Arc::clone(pod)));
            }
            (Eligible::No, None) | (Eligible::Stays, None) => {}
            (found, Some(on_node)) => {
                let running = replace_ended(&mut changes, name, on_node, failed);
                if running.is_empty() && found == Eligible::Yes && set.spec.allows_surge() {
                    changes.create.push(name.clone());
                }
                keep_one(&mut changes, set, &running, hash, now);
            }
        }
    }
    changes.delete.extend(without_node(nodes, &by_node));
    changes
}

/// Deletes pods that ended. Returns the others.
fn replace_ended<'a>(
    changes: &mut Changes,
    node: &str,
    pods: &[&'a Arc<PodFacts>],
    failed: &mut dyn FnMut(&str) -> Option<Duration>,
) -> Vec<&'a Arc<PodFacts>> {
    let mut running = Vec::new();
    for pod in pods.iter().filter(|pod| !pod.deleting) {
        if !pod.has_ended() {
            running.push(*pod);
            continue;
        }
        if pod.phase == Phase::Failed
            && let Some(wait) = failed(node)
        {
            changes.wait = Some(changes.wait.map_or(wait, |known| known.min(wait)));
            continue;
        }
        changes.ended.push((Arc::clone(pod), node.to_owned()));
        changes.delete.push(Arc::clone(pod));
    }
    running
}

/// Keeps the oldest pod of a node. During an update with surge, an old and a new pod
/// remain until the new one is available, or the old one is not ready.
fn keep_one(
    changes: &mut Changes,
    set: &DaemonSet,
    running: &[&Arc<PodFacts>],
    hash: &str,
    now: Timestamp,
) {
    if running.len() <= 1 {
        return;
    }
    let mut delete = |pod: &Arc<PodFacts>| changes.delete.push(Arc::clone(pod));
    if !set.spec.allows_surge() {
        running.iter().skip(1).for_each(|pod| delete(pod));
        return;
    }
    let (new, old): (Vec<&Arc<PodFacts>>, Vec<_>) =
        running.iter().partition(|pod| pod.revision() == hash);
    new.iter()
        .skip(1)
        .chain(old.iter().skip(1))
        .for_each(|pod| delete(pod));
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.is_ready() || new.is_available(set.spec.min_ready_seconds, now))
    {
        delete(old);
    }
}

/// Returns the pods that wait for a node that does not exist.
fn without_node(nodes: &Nodes, pods: &PodsByNode<'_>) -> Vec<Arc<PodFacts>> {
    let gone = pods.iter().filter(|(node, _)| !nodes.contains_key(**node));
    let pods = gone.flat_map(|(_, pods)| pods.iter());
    pods.filter(|pod| pod.node.is_empty() && !pod.deleting)
        .map(|pod| Arc::clone(pod))
        .collect()
}
