//! Checks that the nodes have capacity for tasks now, given the pods that already run on them.
//! Pure.

use std::collections::BTreeMap;

use longshore_model::facts::{NodeFacts, PodFacts, Stage, quantity};

use super::{
    Need, is_selected,
    need::{self, exact, people},
    taint_text,
};

/// The resource that counts the pods of a node.
const PODS: &str = "pods";
/// Sums of requests are compared with this tolerance, in the unit of the resource.
const ROUNDING: f64 = 1e-6;

/// Resources that pods use on the nodes: the sums of their requests by node and resource.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Used(BTreeMap<String, BTreeMap<String, f64>>);

impl Used {
    /// Adds the requests of a pod. A pod without a node, or that has ended, uses nothing.
    pub fn add(&mut self, pod: &PodFacts) {
        let node = &pod.spec.node_name;
        if node.is_empty() || pod.stage() == Stage::Finished {
            return;
        }
        let used = self.0.entry(node.clone()).or_default();
        let itself = (PODS.to_owned(), 1.0);
        for (resource, number) in need::requests(&pod.spec).into_iter().chain([itself]) {
            *used.entry(resource).or_default() += number;
        }
    }

    fn of(&self, node: &NodeFacts, resource: &str) -> f64 {
        let used = self.0.get(&node.metadata.name);
        used.and_then(|used| used.get(resource).copied())
            .unwrap_or(0.0)
    }
}

/// The tasks of a role.
#[derive(Debug, Clone, Copy)]
pub struct Tasks<'a> {
    /// The name of the role.
    pub role: &'a str,
    /// The number of tasks that run at the same time.
    pub count: u32,
    /// The requirements of each task.
    pub need: &'a Need,
}

/// The reason why not all tasks can start now.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortage {
    role: String,
    /// The number of the role's tasks that fit.
    placed: u32,
    count: u32,
    lack: Lack,
}

/// The missing capacity for a task.
#[derive(Debug, Clone, PartialEq)]
enum Lack {
    /// No node that the task may use accepts pods now. The first of these nodes, with the reason.
    Nodes(Option<(String, String)>),
    /// The nodes that the task may use run as many pods as they can.
    Pods,
    /// No node that the task may use has enough of a resource free.
    Resource {
        resource: String,
        asks: f64,
        /// The node with the most of the resource free, and its amount.
        most: (String, f64),
    },
    /// Each node lacks something else.
    Scattered,
}

impl Shortage {
    /// The cause, and the consequence while it lasts.
    #[must_use]
    pub fn tell(&self) -> (String, &'static str) {
        let Self {
            role,
            placed,
            count,
            lack,
        } = self;
        let begin = match (placed, count) {
            (_, 1) => format!("{role}: it has no room now"),
            (0, _) => format!("{role}: its {count} tasks have no room now"),
            _ => format!("{role}: {placed} of its {count} tasks have room now"),
        };
        let rest = match lack {
            Lack::Nodes(first) => {
                let first = first.as_ref();
                let reason = first.map(|(node, reason)| format!(" ({node}: {reason})"));
                let reason = reason.unwrap_or_default();
                format!("no node that it may use accepts pods{reason}")
            }
            Lack::Pods => "the nodes run as many pods as they can".to_owned(),
            Lack::Resource {
                resource,
                asks,
                most: (node, free),
            } => {
                let amount = |number: f64| people(resource, &exact(number));
                format!(
                    "a task requests {} of {resource}, and the most that a node has free is {} ({node})",
                    amount(*asks),
                    amount(*free)
                )
            }
            Lack::Scattered => "each node lacks something that a task requests".to_owned(),
        };
        let then = match lack {
            Lack::Nodes(_) => "its tasks stay pending until a node is ready",
            _ => "its tasks stay pending until other pods end",
        };
        (format!("{begin}: {rest}"), then)
    }
}

/// A node with its free resources, and the number of pods that it can still run.
struct Free<'a> {
    node: &'a NodeFacts,
    amounts: BTreeMap<&'a str, f64>,
    /// `None` if the node has no limit.
    pods: Option<f64>,
}

impl<'a> Free<'a> {
    fn of(node: &'a NodeFacts, used: &Used) -> Self {
        let all = &node.status.allocatable;
        let rest = |resource: &str| Some(quantity(all, resource)? - used.of(node, resource));
        let names = all.keys().map(String::as_str);
        Self {
            node,
            amounts: names.filter_map(|name| Some((name, rest(name)?))).collect(),
            pods: rest(PODS),
        }
    }

    fn amount(&self, resource: &str) -> f64 {
        self.amounts.get(resource).copied().unwrap_or(0.0).max(0.0)
    }

    /// A node that has not reported its resources may have any amount.
    fn is_unlimited(&self) -> bool {
        self.node.status.allocatable.is_empty()
    }

    fn has_place_for_a_pod(&self) -> bool {
        self.pods.is_none_or(|pods| pods >= 1.0)
    }

    fn has_room(&self, need: &Need) -> bool {
        let mut amounts = need.amounts.iter();
        self.has_place_for_a_pod()
            && amounts.all(|(name, asks)| self.amount(name) + ROUNDING >= asks.number)
    }

    fn take(&mut self, need: &Need) {
        for (name, asks) in &need.amounts {
            if let Some(rest) = self.amounts.get_mut(name.as_str()) {
                *rest -= asks.number;
            }
        }
        if let Some(pods) = &mut self.pods {
            *pods -= 1.0;
        }
    }

    /// Reserves the requests of as many tasks as fit. Returns how many of `count` do not fit.
    fn place(&mut self, count: u32, need: &Need) -> u32 {
        if self.is_unlimited() {
            return 0;
        }
        let mut left = count;
        while left > 0 && self.has_room(need) {
            self.take(need);
            left -= 1;
        }
        left
    }
}

/// Returns true if the task selects the node, and the node accepts its pods now.
fn accepts(need: &Need, node: &NodeFacts) -> bool {
    is_selected(need, node) && refusal(need, node).is_none()
}

/// The reason why a node that the task may select does not accept its pods now.
fn refusal(need: &Need, node: &NodeFacts) -> Option<String> {
    if node.spec.unschedulable {
        return Some("cordoned".to_owned());
    }
    let mut taints = node.spec.taints.iter();
    let repels =
        taints.find(|taint| taint.effect != "PreferNoSchedule" && !need.tolerates(taint))?;
    Some(taint_text(repels))
}

/// The largest share of a node's resources that a task requests.
fn share(need: &Need, nodes: &[NodeFacts]) -> f64 {
    let of = |(name, asks): (&String, &super::Asked)| {
        let all = nodes
            .iter()
            .filter_map(|node| quantity(&node.status.allocatable, name));
        asks.number / all.fold(0.0, f64::max).max(ROUNDING)
    };
    need.amounts.iter().map(of).fold(0.0, f64::max)
}

/// Checks that all tasks could start on the nodes now, if the scheduler placed each on the first
/// node with enough capacity: tasks that few nodes accept first, then large tasks. Pods that wait
/// for a node are not considered.
///
/// # Errors
/// The first role whose tasks do not all fit.
pub fn place(tasks: &[Tasks<'_>], nodes: &[NodeFacts], used: &Used) -> Result<(), Shortage> {
    let mut free: Vec<Free<'_>> = nodes.iter().map(|node| Free::of(node, used)).collect();
    let mut ordered: Vec<(usize, f64, &Tasks<'_>)> = tasks
        .iter()
        .map(|tasks| {
            let choices = nodes.iter().filter(|node| accepts(tasks.need, node));
            (choices.count(), share(tasks.need, nodes), tasks)
        })
        .collect();
    ordered.sort_by(|(few, large, _), (other_few, other_large, _)| {
        few.cmp(other_few).then(other_large.total_cmp(large))
    });
    for (_, _, tasks) in ordered {
        let mut left = tasks.count;
        let usable = free
            .iter_mut()
            .filter(|free| accepts(tasks.need, free.node));
        for free in usable {
            left = free.place(left, tasks.need);
        }
        if left > 0 {
            return Err(Shortage {
                role: tasks.role.to_owned(),
                placed: tasks.count - left,
                count: tasks.count,
                lack: lack(tasks.need, &free),
            });
        }
    }
    Ok(())
}

/// The capacity that the nodes lack for another task.
fn lack(need: &Need, free: &[Free<'_>]) -> Lack {
    let usable = || free.iter().filter(|free| accepts(need, free.node));
    if usable().next().is_none() {
        let mut selected = free.iter().filter(|free| is_selected(need, free.node));
        let first = selected.find_map(|free| {
            let name = free.node.metadata.name.clone();
            Some((name, refusal(need, free.node)?))
        });
        return Lack::Nodes(first);
    }
    if !usable().any(Free::has_place_for_a_pod) {
        return Lack::Pods;
    }
    for (resource, asks) in &need.amounts {
        let most = usable().max_by(|a, b| a.amount(resource).total_cmp(&b.amount(resource)));
        let most = most.map(|free| (free.node.metadata.name.clone(), free.amount(resource)));
        if let Some(most) = most.filter(|(_, free)| free + ROUNDING < asks.number) {
            return Lack::Resource {
                resource: resource.clone(),
                asks: asks.number,
                most,
            };
        }
    }
    Lack::Scattered
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use longshore_model::facts::PodSpec;

    fn node(name: &str, allocatable: Value, spec: Value) -> NodeFacts {
        let node = json!({
            "metadata": {"name": name, "labels": {"name": name}}, "spec": spec,
            "status": {"allocatable": allocatable},
        });
        serde_json::from_value(node).unwrap()
    }

    fn spec(requests: Value, rest: Value) -> PodSpec {
        let mut spec = rest;
        spec["containers"] = json!([{"name": "main", "resources": {"requests": requests}}]);
        serde_json::from_value(spec).unwrap()
    }

    fn need(requests: Value, rest: Value) -> Need {
        Need::of(&spec(requests, rest))
    }

    fn used(pods: &[(&str, &str, Value)]) -> Used {
        let mut used = Used::default();
        for (node, phase, requests) in pods {
            used.add(&PodFacts {
                spec: spec(requests.clone(), json!({"nodeName": node})),
                status: serde_json::from_value(json!({"phase": phase})).unwrap(),
                ..PodFacts::default()
            });
        }
        used
    }

    /// The explanation for roles `(name, count, need)`, or `room` if all tasks fit.
    fn verdict(roles: &[(&str, u32, Need)], nodes: &[NodeFacts], used: &Used) -> String {
        let tasks = roles.iter().map(|(role, count, need)| Tasks {
            role,
            count: *count,
            need,
        });
        let tasks: Vec<Tasks<'_>> = tasks.collect();
        match place(&tasks, nodes, used) {
            Ok(()) => "room".to_owned(),
            Err(shortage) => shortage.tell().0,
        }
    }

    #[test]
    fn pods_that_run_use_their_node() {
        let nodes = [
            node("a", json!({"cpu": "4", "pods": "10"}), json!({})),
            node("b", json!({"cpu": "2", "pods": "10"}), json!({})),
        ];
        let three = |count| [("main", count, need(json!({"cpu": "1500m"}), json!({})))];
        assert_eq!(verdict(&three(3), &nodes, &Used::default()), "room");
        let busy = used(&[
            ("a", "Running", json!({"cpu": "3"})),
            ("b", "Succeeded", json!({"cpu": "2"})),
            ("", "Pending", json!({"cpu": "9"})),
        ]);
        assert_eq!(verdict(&three(1), &nodes, &busy), "room");
        assert_eq!(
            verdict(&three(2), &nodes, &busy),
            "main: 1 of its 2 tasks have room now: a task requests 1500m of cpu, and the most that a node has free is 1 (a)"
        );
        let full = used(&[
            ("a", "Running", json!({"cpu": "5"})),
            ("b", "Pending", json!({"cpu": "1"})),
        ]);
        assert_eq!(
            verdict(&three(1), &nodes, &full),
            "main: it has no room now: a task requests 1500m of cpu, and the most that a node has free is 1 (b)"
        );
    }

    #[test]
    fn requests_that_add_up_exactly_have_room() {
        let nodes = [node("a", json!({"cpu": "1", "pods": "110"}), json!({}))];
        let tenths = need(json!({"cpu": "100m"}), json!({}));
        assert_eq!(
            verdict(&[("w", 10, tenths.clone())], &nodes, &Used::default()),
            "room"
        );
        let text = verdict(&[("w", 11, tenths)], &nodes, &Used::default());
        assert!(text.starts_with("w: 10 of its 11 tasks"), "{text}");
    }

    #[test]
    fn the_number_of_pods_is_limited() {
        let nodes = [node("a", json!({"cpu": "8", "pods": "2"}), json!({}))];
        let none = || need(json!({}), json!({}));
        let one = used(&[("a", "Running", json!({}))]);
        assert_eq!(verdict(&[("w", 1, none())], &nodes, &one), "room");
        assert_eq!(
            verdict(&[("w", 2, none())], &nodes, &one),
            "w: 1 of its 2 tasks have room now: the nodes run as many pods as they can"
        );
    }

    #[test]
    fn nodes_that_accept_no_pods_do_not_count() {
        let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
        let one = |spec: Value| [node("a", json!({"cpu": "8", "pods": "9"}), spec)];
        let task = |rest: Value| [("main", 1, need(json!({"cpu": "1"}), rest))];
        let text = "main: it has no room now: no node that it may use accepts pods";
        for (spec, reason) in [
            (json!({"unschedulable": true}), "cordoned"),
            (
                taint("node.kubernetes.io/not-ready"),
                "node.kubernetes.io/not-ready:NoSchedule",
            ),
            (taint("team"), "team:NoSchedule"),
        ] {
            let nodes = one(spec);
            let expected = format!("{text} (a: {reason})");
            assert_eq!(
                verdict(&task(json!({})), &nodes, &Used::default()),
                expected
            );
        }
        let tolerates = json!({"tolerations": [{"operator": "Exists"}]});
        let nodes = one(taint("team"));
        assert_eq!(verdict(&task(tolerates), &nodes, &Used::default()), "room");
        let elsewhere = json!({"nodeSelector": {"name": "b"}});
        assert_eq!(
            verdict(&task(elsewhere), &one(json!({})), &Used::default()),
            text
        );
    }

    #[test]
    fn tasks_with_few_nodes_and_large_tasks_are_placed_first() {
        let nodes = [
            node("a", json!({"cpu": "4", "pods": "9"}), json!({})),
            node("b", json!({"cpu": "4", "pods": "9"}), json!({})),
        ];
        let bound = need(json!({"cpu": "4"}), json!({"nodeSelector": {"name": "a"}}));
        let anywhere = need(json!({"cpu": "4"}), json!({}));
        let roles = [("any", 1, anywhere), ("bound", 1, bound)];
        assert_eq!(verdict(&roles, &nodes, &Used::default()), "room");
        let small = need(json!({"cpu": "1"}), json!({}));
        let large = need(json!({"cpu": "3"}), json!({}));
        let roles = [("small", 2, small), ("large", 2, large)];
        assert_eq!(verdict(&roles, &nodes, &Used::default()), "room");
    }

    #[test]
    fn a_node_without_reported_resources_may_have_any() {
        let nodes = [node("new", json!({}), json!({}))];
        let many = [("w", 1000, need(json!({"cpu": "64"}), json!({})))];
        assert_eq!(verdict(&many, &nodes, &Used::default()), "room");
        let text = verdict(&many, &[], &Used::default());
        assert!(text.contains("no node"), "{text}");
    }

    #[test]
    fn different_nodes_may_lack_different_resources() {
        let nodes = [
            node(
                "a",
                json!({"cpu": "8", "memory": "1Gi", "pods": "9"}),
                json!({}),
            ),
            node(
                "b",
                json!({"cpu": "1", "memory": "8Gi", "pods": "9"}),
                json!({}),
            ),
        ];
        let both = need(json!({"cpu": "4", "memory": "4Gi"}), json!({}));
        let text = verdict(&[("w", 2, both)], &nodes, &Used::default());
        assert!(text.contains("each node lacks something"), "{text}");
        let huge = need(json!({"memory": "9Gi"}), json!({}));
        let text = verdict(&[("w", 1, huge)], &nodes, &Used::default());
        assert!(
            text.contains("9Gi of memory, and the most that a node has free is 8Gi (b)"),
            "{text}"
        );
    }
}
