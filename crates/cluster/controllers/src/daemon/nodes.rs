//! The nodes, and which of them are eligible.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{Node, Taint};

use super::facts::DaemonSet;
use crate::{
    pod_facts::PodFacts,
    scheduler::{affinity, taints},
};

/// The fields of a node that the controller reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NodeFacts {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) taints: Vec<Taint>,
}

impl NodeFacts {
    /// Reads a node.
    pub(super) fn of(node: &Node) -> Self {
        Self {
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: taints(node),
        }
    }
}

/// The nodes by name.
pub(super) type Nodes = BTreeMap<String, NodeFacts>;

/// The eligibility of a node for a DaemonSet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eligible {
    /// The node needs a pod.
    Yes,
    /// The node has a new taint that keeps pods away. An existing pod stays.
    Stays,
    /// The node gets no pod.
    No,
}

/// Decides whether a node is eligible.
pub(super) fn eligible(set: &DaemonSet, name: &str, node: &NodeFacts) -> Eligible {
    let placement = &set.placement;
    let given = placement.node_name.as_deref().unwrap_or_default();
    let named = given.is_empty() || given == name;
    if !named || !affinity::matches_node(placement, name, &node.labels) {
        return Eligible::No;
    }
    let tolerations = placement.tolerations.as_deref().unwrap_or_default();
    if affinity::untolerated_taint(&node.taints, tolerations).is_none() {
        return Eligible::Yes;
    }
    let evicting = node.taints.iter().filter(|one| one.effect == "NoExecute");
    let evicting: Vec<Taint> = evicting.cloned().collect();
    match affinity::untolerated_taint(&evicting, tolerations) {
        None => Eligible::Stays,
        Some(_) => Eligible::No,
    }
}

/// Returns the eligible nodes.
pub(super) fn wanted<'a>(set: &DaemonSet, nodes: &'a Nodes) -> BTreeSet<&'a str> {
    let nodes = nodes.iter();
    nodes
        .filter(|(name, node)| eligible(set, name, node) == Eligible::Yes)
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The pods of each node, from the first to keep to the first to delete.
pub(super) type PodsByNode<'a> = BTreeMap<&'a str, Vec<&'a Arc<PodFacts>>>;

/// Groups pods by the node on which they run or will run. Pods that have ended and are
/// being deleted do not count.
pub(super) fn by_node(pods: &[Arc<PodFacts>]) -> PodsByNode<'_> {
    let mut nodes: PodsByNode<'_> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !(pod.deleting && pod.has_ended())) {
        let bound = Some(pod.node.as_str()).filter(|node| !node.is_empty());
        if let Some(node) = bound.or(pod.pinned.as_deref()) {
            nodes.entry(node).or_default().push(pod);
        }
    }
    for pods in nodes.values_mut() {
        pods.sort_by(|a, b| by_age(a, b));
    }
    nodes
}

/// Pods that are scheduled come first, then the oldest.
fn by_age(a: &PodFacts, b: &PodFacts) -> Ordering {
    a.node
        .is_empty()
        .cmp(&b.node.is_empty())
        .then_with(|| a.created.cmp(&b.created))
        .then_with(|| a.key.name.cmp(&b.key.name))
}
