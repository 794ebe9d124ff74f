//! Whether any node could ever take a task: what the task needs against what
//! the nodes have when they are empty. Pure.

mod affinity;
mod need;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::evidence::{NodeEvidence, Taint, number};
pub use need::{Need, limits, requests};
pub(crate) use need::{exact, people};

/// The nodes of a cluster, as far as they could be seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Nodes {
    /// The nodes.
    pub seen: Vec<NodeEvidence>,
    /// Whether there are more than those.
    pub more: bool,
}

/// Why no node can ever take a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Misfit {
    /// No node has so much of a resource.
    TooLarge {
        /// The resource.
        resource: String,
        /// What the task asks for.
        asks: String,
        /// The node that has most of it, and how much; none has any without.
        largest: Option<(String, String)>,
    },
    /// No node has the labels that the task selects nodes by.
    Selector {
        /// The label, or the rule about labels.
        label: String,
    },
    /// The nodes that would do have taints that the task does not tolerate.
    Tainted {
        /// The taints, as `key=value:effect`.
        taints: Vec<String>,
    },
    /// Each node lacks something else.
    Scattered,
}

impl Misfit {
    /// The sentence after the task's name, and what to do about it.
    #[must_use]
    pub fn tell(&self) -> (String, String) {
        match self {
            Self::TooLarge {
                resource,
                asks,
                largest: Some((node, has)),
            } => (
                format!(
                    "no node could ever take it: it asks for {asks} of {resource}, and the largest node, {node}, has {has}"
                ),
                format!("ask for at most {has} of {resource}, or add a larger node"),
            ),
            Self::TooLarge { resource, asks, .. } => (
                format!(
                    "no node could ever take it: it asks for {asks} of {resource}, and no node has any"
                ),
                format!("add a node with {resource}, or ask for none"),
            ),
            Self::Selector { label } => (
                format!("no node could ever take it: none has the label {label}"),
                match label.contains(' ') {
                    true => "correct the affinity, or label a node".to_owned(),
                    false => format!(
                        "correct `node_selector`, or label a node: `longshore label node NODE {label}`"
                    ),
                },
            ),
            Self::Tainted { taints } => (
                format!(
                    "no node could ever take it: the nodes that would do are tainted {}, which it does not tolerate",
                    taints.join(", ")
                ),
                "tolerate the taint, or use other nodes".to_owned(),
            ),
            Self::Scattered => (
                "no node could ever take it: each lacks something that it asks for".to_owned(),
                "compare what it asks for with `longshore describe nodes`".to_owned(),
            ),
        }
    }
}

/// Whether some node could take the task when it is empty and well; if not,
/// why. Without nodes there is no answer, and so no complaint.
///
/// # Errors
/// Why no node can.
pub fn check(need: &Need, nodes: &[NodeEvidence]) -> Result<(), Misfit> {
    if nodes.is_empty() || nodes.iter().any(|node| fits(need, node)) {
        return Ok(());
    }
    for (resource, asks) in &need.amounts {
        let most = |node: &&NodeEvidence| number(&node.status.allocatable, resource).unwrap_or(0.0);
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

/// Whether a node could take the task when it is empty and well.
fn fits(need: &Need, node: &NodeEvidence) -> bool {
    has_room(need, node)
        && is_selected(need, node)
        && lasting(node).all(|taint| need.tolerates(taint))
}

fn has_room(need: &Need, node: &NodeEvidence) -> bool {
    // One that has not told what it has may have anything.
    if node.status.allocatable.is_empty() {
        return true;
    }
    need.amounts.iter().all(|(resource, asks)| {
        number(&node.status.allocatable, resource).unwrap_or(0.0) >= asks.number
    })
}

fn is_selected(need: &Need, node: &NodeEvidence) -> bool {
    let mut labels = need.node_selector.iter();
    labels.all(|(key, value)| has_label(node, key, value)) && affinity::allows(&need.affinity, node)
}

fn has_label(node: &NodeEvidence, key: &str, value: &str) -> bool {
    node.metadata
        .labels
        .get(key)
        .is_some_and(|found| found == value)
}

/// Taints that stay. Those that the cluster itself puts on an ill or cordoned
/// node go again.
fn lasting(node: &NodeEvidence) -> impl Iterator<Item = &Taint> {
    node.spec
        .taints
        .iter()
        .filter(|taint| taint.effect != "PreferNoSchedule" && !is_passing(&taint.key))
}

/// Whether the cluster takes a taint away again by itself.
#[must_use]
pub fn is_passing(key: &str) -> bool {
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
#[must_use]
pub fn taint_text(taint: &Taint) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    format!("{}{equals}{}:{}", taint.key, taint.value, taint.effect)
}

/// Whether something may add nodes to the cluster when tasks wait: the marks
/// that autoscalers leave on the nodes they manage.
#[must_use]
pub fn may_grow(nodes: &[NodeEvidence]) -> bool {
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
