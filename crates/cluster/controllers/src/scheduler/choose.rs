//! Chooses a node for a pod, or explains why no node fits.

use std::{borrow::Borrow, collections::BTreeMap};

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec, Taint};

use longshore_model::HostPort;

use super::{
    affinity,
    ports::{self, UsedPorts},
    resources::{Amounts, occupied_by},
};
use crate::volumes::{PodClaim, claims_of};

/// The taint for a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The message in a cluster without nodes.
const NO_NODES: &str = "no nodes available to schedule pods";

/// The fields of a node that the scheduler reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeFacts {
    /// The name of the node.
    pub(crate) name: String,
    pub(super) labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    unschedulable: bool,
    allocatable: Amounts,
}

/// Returns the taints of a node. A node that is not ready has the taint that
/// Kubernetes' node lifecycle controller would give it.
pub(crate) fn taints(node: &Node) -> Vec<Taint> {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.clone());
    let mut taints = taints.unwrap_or_default();
    if !is_ready(node) {
        taints.push(no_schedule(NOT_READY));
    }
    taints
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|c| c.type_ == "Ready" && c.status == "True")
}

fn no_schedule(key: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    }
}

impl NodeFacts {
    /// Reads a node.
    pub(crate) fn of(node: &Node) -> Self {
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.as_ref();
        let given =
            status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: taints(node),
            unschedulable: spec.unschedulable == Some(true),
            allocatable: Amounts::of(given),
        }
    }

    /// Returns the value of a label.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }
}

/// The resources and ports in use on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The number of pods.
    pub(crate) pods: i128,
    /// The sum of the pods' requests.
    pub(crate) amounts: Amounts,
    /// The ports of the node that the pods use.
    ports: UsedPorts,
}

impl Usage {
    /// Adds a pod with these requests.
    pub(crate) fn add(&mut self, load: &Load) {
        self.pods += 1;
        self.amounts.add(&load.amounts);
        self.ports.add(&load.ports);
    }

    /// Removes a pod with these requests.
    pub(crate) fn remove(&mut self, load: &Load) {
        self.pods -= 1;
        self.amounts.subtract(&load.amounts);
        self.ports.remove(&load.ports);
    }
}

/// The resources and ports of a node that a pod uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// The requested amounts.
    pub(crate) amounts: Amounts,
    /// The requested ports.
    pub(crate) ports: Vec<HostPort>,
}

/// The requirements of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Needs {
    spec: PodSpec,
    /// The resources and ports of a node that the pod uses.
    pub(crate) load: Load,
    /// The claims of the pod's volumes.
    pub(crate) claims: Vec<PodClaim>,
}

impl Needs {
    /// Reads a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::default();
        };
        let load = Load {
            amounts: occupied_by(spec, pod.status.as_ref()),
            ports: ports::of_pod(spec),
        };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let claims = claims_of(name, spec.volumes.as_deref().unwrap_or_default());
        let spec = PodSpec {
            node_selector: spec.node_selector.clone(),
            affinity: spec.affinity.clone(),
            tolerations: spec.tolerations.clone(),
            ..PodSpec::default()
        };
        Self { spec, load, claims }
    }
}

/// Returns the message for a pod that fits no node, for example because of its claims.
pub(crate) fn on_no_node(nodes: usize, reason: &str) -> String {
    match nodes {
        0 => NO_NODES.to_owned(),
        nodes => format!("0/{nodes} nodes are available: {reason}."),
    }
}

/// Returns the name of the best node, or a message if no node fits. `others` returns the reason why
/// the pod's claims and other pods do not permit a node. `preference` returns the preference of
/// other pods for a node.
///
/// # Errors
/// The message of the condition PodScheduled, for example
/// `0/1 nodes are available: 1 Insufficient cpu.`
pub(crate) fn choose<'a, U: Borrow<Usage>>(
    needs: &Needs,
    nodes: impl IntoIterator<Item = (&'a NodeFacts, U)>,
    others: impl Fn(&NodeFacts) -> Vec<String>,
    preference: impl Fn(&NodeFacts) -> [i64; 2],
) -> Result<&'a str, String> {
    let mut total = 0;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for (node, usage) in nodes {
        let usage = usage.borrow();
        total += 1;
        let mut problems = problems(needs, node, usage);
        if problems.is_empty() {
            problems = others(node);
        }
        if problems.is_empty() {
            let [pods, spread] = preference(node);
            fitting.push(Fitting {
                node: &node.name,
                free_share: free_share(needs, node, usage),
                raw: [
                    affinity::preference(&needs.spec, &node.name, &node.labels),
                    pods,
                    spread,
                    affinity::avoidance(&node.taints, &needs.spec),
                ],
            });
        }
        for problem in problems {
            *reasons.entry(problem).or_insert(0) += 1;
        }
    }
    if let Some(name) = best(&fitting) {
        return Ok(name);
    }
    if total == 0 {
        return Err(NO_NODES.to_owned());
    }
    let mut reasons: Vec<String> = reasons
        .into_iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    reasons.sort();
    Err(format!(
        "0/{total} nodes are available: {}.",
        reasons.join(", ")
    ))
}

/// A node on which the pod can run.
struct Fitting<'a> {
    node: &'a str,
    free_share: f64,
    /// The scores: affinity to the node, affinity to pods, spread, taints. Higher is better.
    raw: [i64; 4],
}

/// The weights of the raw scores, as in Kubernetes' scheduler. Free resources have the weight 1.
const WEIGHTS: [f64; 4] = [2.0, 2.0, 2.0, 3.0];

/// Returns the node with the highest score, or the first of several. Raw scores are scaled to their
/// range on these nodes.
fn best<'a>(fitting: &[Fitting<'a>]) -> Option<&'a str> {
    let range = |index: usize| {
        let values = || fitting.iter().map(|one| one.raw[index]);
        (
            values().min().unwrap_or_default(),
            values().max().unwrap_or_default(),
        )
    };
    let ranges = [range(0), range(1), range(2), range(3)];
    let score = |one: &Fitting<'_>| {
        let parts = one.raw.iter().zip(ranges).zip(WEIGHTS);
        let parts = parts.map(|((raw, (lowest, highest)), weight)| {
            let width = highest.saturating_sub(lowest);
            #[allow(
                clippy::cast_precision_loss,
                reason = "a score needs no more precision"
            )]
            match width {
                0 => 0.0,
                width => weight * (raw.saturating_sub(lowest) as f64 / width as f64),
            }
        });
        one.free_share + parts.sum::<f64>()
    };
    let mut best: Option<(f64, &'a str)> = None;
    for one in fitting {
        let score = score(one);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, one.node));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns true if the pod selects the node by its labels.
pub(super) fn selects(needs: &Needs, node: &NodeFacts) -> bool {
    affinity::matches_node(&needs.spec, &node.name, &node.labels)
}

/// Returns true if the node has a taint that the pod does not tolerate.
pub(super) fn untolerated(needs: &Needs, node: &NodeFacts) -> bool {
    let tolerations = needs.spec.tolerations.as_deref().unwrap_or_default();
    affinity::untolerated_taint(&node.taints, tolerations).is_some()
}

/// Returns the reasons why the pod cannot run on the node. As in Kubernetes' scheduler, all
/// insufficient resources are listed, but only the first other problem.
pub(super) fn problems(needs: &Needs, node: &NodeFacts, usage: &Usage) -> Vec<String> {
    let tolerations = needs.spec.tolerations.as_deref().unwrap_or_default();
    let unschedulable = [no_schedule("node.kubernetes.io/unschedulable")];
    if node.unschedulable && affinity::untolerated_taint(&unschedulable, tolerations).is_some() {
        return vec!["node(s) were unschedulable".to_owned()];
    }
    if let Some(taint) = affinity::untolerated_taint(&node.taints, tolerations) {
        let value = taint.value.as_deref().unwrap_or_default();
        return vec![format!(
            "node(s) had untolerated taint {{{}: {value}}}",
            taint.key
        )];
    }
    if !affinity::matches_node(&needs.spec, &node.name, &node.labels) {
        return vec!["node(s) didn't match Pod's node affinity/selector".to_owned()];
    }
    if usage.ports.conflict_with(&needs.load.ports) {
        return vec![HostPort::CONFLICT.to_owned()];
    }
    let mut problems = Vec::new();
    if (usage.pods + 1) * 1000 > node.allocatable.get("pods") {
        problems.push("Too many pods".to_owned());
    }
    for (name, amount) in &needs.load.amounts.0 {
        if *amount > 0
            && usage.amounts.get(name).saturating_add(*amount) > node.allocatable.get(name)
        {
            problems.push(format!("Insufficient {name}"));
        }
    }
    problems
}

/// Returns the mean free share of CPU and memory, so that pods are spread over the nodes.
fn free_share(needs: &Needs, node: &NodeFacts, usage: &Usage) -> f64 {
    let share = |name: &str| {
        let all = node.allocatable.get(name);
        let used = usage
            .amounts
            .get(name)
            .saturating_add(needs.load.amounts.get(name));
        #[allow(
            clippy::cast_precision_loss,
            reason = "a share needs no more precision"
        )]
        if all > 0 {
            all.saturating_sub(used) as f64 / all as f64
        } else {
            0.0
        }
    };
    #[allow(clippy::cast_precision_loss, reason = "counts of pods are small")]
    let pod_count_penalty = usage.pods as f64 * 1e-6;
    f64::midpoint(share("cpu"), share("memory")) - pod_count_penalty
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, more: Value) -> NodeFacts {
        let mut node = json!({
            "metadata": {"name": name, "labels": {"zone": name}},
            "spec": {},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "2"}
            }
        });
        for (key, value) in more.as_object().unwrap() {
            node[key]
                .as_object_mut()
                .unwrap()
                .extend(value.as_object().unwrap().clone());
        }
        NodeFacts::of(&serde_json::from_value(node).unwrap())
    }

    fn needs(cpu: &str, more: Value) -> Needs {
        let mut spec = json!({"containers": [
            {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        ]});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        Needs::of(&serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap())
    }

    fn used(cpu: &[&str]) -> Usage {
        let mut usage = Usage::default();
        cpu.iter()
            .for_each(|cpu| usage.add(&needs(cpu, json!({})).load));
        usage
    }

    fn reason(needs: &Needs, nodes: &[(NodeFacts, Usage)]) -> String {
        choose(
            needs,
            nodes.iter().map(|(node, usage)| (node, usage)),
            |_| Vec::new(),
            |_| [0, 0],
        )
        .unwrap_err()
    }

    #[test]
    fn the_message_explains_why_no_node_fits() {
        let plain = || needs("1", json!({}));
        let table = [
            (plain(), vec![], "no nodes available to schedule pods"),
            (
                needs("3", json!({})),
                vec![(node("a", json!({})), used(&[]))],
                "0/1 nodes are available: 1 Insufficient cpu.",
            ),
            (
                plain(),
                vec![(node("a", json!({})), used(&["1500m", "500m"]))],
                "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods.",
            ),
            (
                plain(),
                vec![(node("a", json!({"status": {"conditions": []}})), used(&[]))],
                "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            ),
            (
                plain(),
                vec![
                    (
                        node("a", json!({"spec": {"unschedulable": true}})),
                        used(&[]),
                    ),
                    (
                        node(
                            "b",
                            json!({"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}),
                        ),
                        used(&[]),
                    ),
                    (node("c", json!({})), used(&["2"])),
                ],
                "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {gpu: yes}, 1 node(s) were unschedulable.",
            ),
            (
                needs("1", json!({"nodeSelector": {"zone": "x"}})),
                vec![
                    (node("a", json!({})), used(&[])),
                    (node("b", json!({})), used(&[])),
                ],
                "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            ),
            (
                needs(
                    "1",
                    json!({"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}),
                ),
                vec![(node("a", json!({})), used(&[]))],
                "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
            ),
        ];
        for (needs, nodes, message) in table {
            assert_eq!(reason(&needs, &nodes), message);
        }
    }

    #[test]
    fn the_fitting_node_with_the_most_free_resources_is_chosen() {
        let nodes = [
            (node("a", json!({})), used(&["500m"])),
            (node("b", json!({})), used(&[])),
            (
                node("c", json!({"spec": {"unschedulable": true}})),
                used(&[]),
            ),
        ];
        let pick = |needs: &Needs| {
            let nodes = nodes.iter().map(|(n, u)| (n, u));
            choose(needs, nodes, |_| Vec::new(), |_| [0, 0]).unwrap()
        };
        assert_eq!(pick(&needs("1", json!({}))), "b");
        assert_eq!(
            pick(&needs("1", json!({"nodeSelector": {"zone": "a"}}))),
            "a"
        );
        let exact = needs("1500m", json!({"nodeSelector": {"zone": "a"}}));
        assert_eq!(pick(&exact), "a");
    }

    #[test]
    fn a_port_of_a_node_is_given_to_one_pod() {
        let wants = |port: Value| {
            let container = json!({"name": "c", "ports": [port]});
            needs("1", json!({"containers": [container]}))
        };
        let port = json!({"containerPort": 1, "hostPort": 80});
        let mut usage = Usage::default();
        usage.add(&wants(port.clone()).load);
        let nodes = [(node("a", json!({})), usage)];
        assert_eq!(
            reason(&wants(port), &nodes),
            "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
        );
        let other = wants(json!({"containerPort": 1, "hostPort": 80, "protocol": "UDP"}));
        let fits = nodes.iter().map(|(node, usage)| (node, usage));
        assert_eq!(choose(&other, fits, |_| Vec::new(), |_| [0, 0]), Ok("a"));
    }

    #[test]
    fn preferences_outweigh_free_resources() {
        let avoided = json!({"spec": {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}});
        let nodes = [
            (node("a", json!({})), used(&["500m"])),
            (node("b", json!({})), used(&[])),
            (node("c", avoided), used(&[])),
        ];
        let pick = |needs: &Needs, preferred: &str| {
            let nodes = nodes.iter().map(|(n, u)| (n, u));
            let preference = |node: &NodeFacts| [i64::from(node.name == preferred), 0];
            choose(needs, nodes, |_| Vec::new(), preference).unwrap()
        };
        assert_eq!(pick(&needs("1", json!({})), ""), "b");
        assert_eq!(pick(&needs("1", json!({})), "a"), "a");
        let expressions = json!([{"key": "zone", "operator": "In", "values": ["a"]}]);
        let term = json!([{"weight": 1, "preference": {"matchExpressions": expressions}}]);
        let affine = json!({"affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": term}}});
        assert_eq!(pick(&needs("1", affine), ""), "a");
    }

    #[test]
    fn tolerated_problems_do_not_prevent_scheduling() {
        let nodes = [(
            node(
                "a",
                json!({"spec": {"unschedulable": true}, "status": {"conditions": []}}),
            ),
            used(&[]),
        )];
        let needs = needs("1", json!({"tolerations": [{"operator": "Exists"}]}));
        let nodes = || nodes.iter().map(|(n, u)| (n, u));
        let none = |_: &NodeFacts| [0, 0];
        assert_eq!(choose(&needs, nodes(), |_| Vec::new(), none), Ok("a"));
        let refused = choose(
            &needs,
            nodes(),
            |_| vec!["node(s) lack a volume".into()],
            none,
        );
        let message = "0/1 nodes are available: 1 node(s) lack a volume.";
        assert_eq!(refused, Err(message.into()));
    }
}
