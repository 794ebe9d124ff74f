//! Checks whether any node could ever run a task: compares the task's needs with empty
//! nodes. Pure.

use longshore_model::facts::{NodeFacts, Taint, quantity};
mod affinity;
mod need;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use need::{Asked, Need, exact, limits, people, requests};
pub use room::{Shortage, Tasks, Used, place};

/// The visible nodes of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nodes {
    /// The nodes.
    pub seen: Vec<NodeFacts>,
    /// True if there are more nodes than `seen` contains.
    pub more: bool,
}

/// The reason why no node can ever run a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Misfit {
    /// No node has enough of a resource.
    TooLarge {
        /// The resource.
        resource: String,
        /// The requested amount.
        asks: String,
        /// The node with the highest amount, and its amount. `None` if no node has the resource.
        largest: Option<(String, String)>,
    },
    /// No node has the labels that the task selects nodes by.
    Selector {
        /// The label, or the rule.
        label: String,
    },
    /// The nodes that fit have taints that the task does not tolerate.
    Tainted {
        /// The taints, as `key=value:effect`.
        taints: Vec<String>,
    },
    /// Each node lacks a different requirement.
    Scattered,
}

impl Misfit {
    /// The cause, to follow the name of the task, and the remedy.
    #[must_use]
    pub fn tell(&self) -> (String, String) {
        match self {
            Self::TooLarge {
                resource,
                asks,
                largest: Some((node, has)),
            } => (
                format!(
                    "it fits on no node: it requests {asks} of {resource}, and the largest node, {node}, has {has}"
                ),
                format!("request at most {has} of {resource}, or add a larger node"),
            ),
            Self::TooLarge { resource, asks, .. } => (
                format!(
                    "it fits on no node: it requests {asks} of {resource}, and no node has any"
                ),
                format!("add a node with {resource}, or request none"),
            ),
            Self::Selector { label } => (
                format!("it fits on no node: none has the label {label}"),
                match label.contains(' ') {
                    true => "correct the affinity, or label a node".to_owned(),
                    false => format!(
                        "correct `node_selector`, or label a node: `longshore label node NODE {label}`"
                    ),
                },
            ),
            Self::Tainted { taints } => (
                format!(
                    "it fits on no node: the other nodes have taints {}, which it does not tolerate",
                    taints.join(", ")
                ),
                "tolerate the taint, or use other nodes".to_owned(),
            ),
            Self::Scattered => (
                "it fits on no node: each node lacks something that it requests".to_owned(),
                "compare its requests with `longshore describe nodes`".to_owned(),
            ),
        }
    }
}

/// Checks that some node could run the task if it were empty and healthy. Succeeds if there are no
/// nodes.
///
/// # Errors
/// The reason why no node can run the task.
pub fn check(need: &Need, nodes: &[NodeFacts]) -> Result<(), Misfit> {
    if nodes.is_empty() || nodes.iter().any(|node| fits(need, node)) {
        return Ok(());
    }
    for (resource, asks) in &need.amounts {
        let most = |node: &&NodeFacts| quantity(&node.status.allocatable, resource).unwrap_or(0.0);
        let largest = nodes.iter().max_by(|a, b| most(a).total_cmp(&most(b)));
        let has = largest.as_ref().map_or(0.0, most);
        if has < asks.number {
            return Err(Misfit::TooLarge {
                resource: resource.clone(),
                asks: asks.text(resource),
                largest: largest.filter(|_| has > 0.0).map(|node| {
                    let has = &node.status.allocatable[resource];
                    (node.metadata.name.clone(), need::people(resource, has))
                }),
            });
        }
    }
    for (key, value) in &need.node_selector {
        if !nodes.iter().any(|node| has_label(node, key, value)) {
            return Err(Misfit::Selector {
                label: format!("{key}={value}"),
            });
        }
    }
    if let Some(rule) = affinity::unmet(&need.affinity, nodes) {
        return Err(Misfit::Selector { label: rule });
    }
    let else_fit = nodes
        .iter()
        .filter(|node| has_room(need, node) && is_selected(need, node));
    let taints: BTreeSet<String> = else_fit
        .flat_map(|node| lasting(node).filter(|taint| !need.tolerates(taint)))
        .map(taint_text)
        .collect();
    if taints.is_empty() {
        return Err(Misfit::Scattered);
    }
    Err(Misfit::Tainted {
        taints: taints.into_iter().collect(),
    })
}

/// Returns true if the node could run the task if it were empty and healthy.
fn fits(need: &Need, node: &NodeFacts) -> bool {
    has_room(need, node)
        && is_selected(need, node)
        && lasting(node).all(|taint| need.tolerates(taint))
}

fn has_room(need: &Need, node: &NodeFacts) -> bool {
    // A node that has not reported its resources may have any amount.
    if node.status.allocatable.is_empty() {
        return true;
    }
    need.amounts.iter().all(|(resource, asks)| {
        quantity(&node.status.allocatable, resource).unwrap_or(0.0) >= asks.number
    })
}

fn is_selected(need: &Need, node: &NodeFacts) -> bool {
    let mut labels = need.node_selector.iter();
    labels.all(|(key, value)| has_label(node, key, value)) && affinity::allows(&need.affinity, node)
}

fn has_label(node: &NodeFacts, key: &str, value: &str) -> bool {
    node.metadata
        .labels
        .get(key)
        .is_some_and(|found| found == value)
}

/// Taints other than the temporary ones that the cluster sets on unhealthy or cordoned nodes.
fn lasting(node: &NodeFacts) -> impl Iterator<Item = &Taint> {
    node.spec
        .taints
        .iter()
        .filter(|taint| taint.effect != "PreferNoSchedule" && !is_passing(&taint.key))
}

/// Returns true if the cluster removes a taint by itself.
pub(crate) fn is_passing(key: &str) -> bool {
    const PASSING: [&str; 8] = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/unschedulable",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ];
    PASSING.contains(&key)
}

/// `key=value:effect`, as kubectl writes it.
pub(crate) fn taint_text(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    format!("{}{equals}{}:{}", taint.key, taint.value, taint.effect)
}

/// Returns true if an autoscaler may add nodes, based on labels and annotations of the nodes.
#[must_use]
pub fn may_grow(nodes: &[NodeFacts]) -> bool {
    const LABELS: [&str; 6] = [
        "karpenter.sh/",
        "eks.amazonaws.com/nodegroup",
        "cloud.google.com/gke-nodepool",
        "cloud.google.com/gke-provisioning",
        "kubernetes.azure.com/agentpool",
        "cluster-api.x-k8s.io/",
    ];
    const ANNOTATIONS: [&str; 3] = [
        "cluster-autoscaler.kubernetes.io/",
        "karpenter.sh/",
        "cluster.x-k8s.io/",
    ];
    nodes.iter().any(|node| {
        let meta = &node.metadata;
        let is_virtual = meta
            .labels
            .get("type")
            .is_some_and(|kind| kind == "virtual-kubelet");
        let has = |keys: &[&str], key: &String| keys.iter().any(|known| key.starts_with(known));
        is_virtual
            || meta.labels.keys().any(|key| has(&LABELS, key))
            || meta.annotations.keys().any(|key| has(&ANNOTATIONS, key))
    })
}
