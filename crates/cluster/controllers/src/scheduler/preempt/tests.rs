//! The choice of victims on one node, and of the node.
#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::scheduler::resources::Amounts;

/// A pod `name`, with a priority, a request of millicores, a start in seconds, and the
/// label `app`.
struct Running {
    key: Key,
    priority: i32,
    load: Load,
    started: Timestamp,
    labels: BTreeMap<String, String>,
}

fn pod(name: &str, priority: i32, cpu: i128, started: i64) -> Running {
    let app = name.split('-').next().unwrap_or_default();
    Running {
        key: Key::new("default", name),
        priority,
        load: Load {
            amounts: Amounts([("cpu".to_owned(), cpu)].into()),
            ports: Vec::new(),
        },
        started: Timestamp::from_second(started).unwrap(),
        labels: [("app".to_owned(), app.to_owned())].into(),
    }
}

fn node(name: &str) -> NodeFacts {
    let node = json!({"metadata": {"name": name}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "1", "pods": "10"}}});
    NodeFacts::of(&serde_json::from_value(node).unwrap())
}

fn budget(app: &str, allowed: i32) -> Budget {
    Budget {
        namespace: "default".into(),
        selector: format!("app={app}").parse().unwrap(),
        allowed,
        disrupted: Default::default(),
    }
}

/// Chooses for a pod that requests `cpu`, on nodes with one core.
fn chosen(cpu: i128, nodes: &[(&str, Vec<Running>)], budgets: &[Budget]) -> Option<String> {
    let facts: Vec<NodeFacts> = nodes.iter().map(|(name, _)| node(name)).collect();
    let candidates = nodes.iter().zip(&facts).map(|((_, pods), node)| {
        let mut usage = Usage::default();
        pods.iter().for_each(|pod| usage.add(&pod.load));
        let victims = pods.iter().map(|pod| Victim {
            key: &pod.key,
            priority: pod.priority,
            started: Some(pod.started),
            labels: &pod.labels,
            load: &pod.load,
        });
        Candidate {
            node,
            usage,
            victims: victims.collect(),
        }
    });
    let budgets: Vec<&Budget> = budgets.iter().collect();
    let found = choose(candidates, &budgets, |_, usage| {
        usage.amounts.get("cpu") + cpu <= 1000
    })?;
    let names: Vec<&str> = found.victims.iter().map(|key| key.name.as_str()).collect();
    Some(format!("{}: {}", found.node, names.join(" ")))
}

#[test]
fn as_few_unimportant_pods_as_possible_are_deleted() {
    let nodes = || {
        vec![(
            "n",
            vec![
                pod("a", 3, 300, 10),
                pod("b", 1, 300, 20),
                pod("c", 1, 300, 30),
                pod("d", 2, 100, 40),
            ],
        )]
    };
    for (cpu, victims) in [
        (300, Some("n: c")),
        (600, Some("n: b c")),
        (700, Some("n: d b c")),
        (1000, Some("n: a d b c")),
        (1001, None),
    ] {
        assert_eq!(chosen(cpu, &nodes(), &[]).as_deref(), victims, "{cpu}");
    }
    assert_eq!(chosen(1, &[("n", Vec::new())], &[]), None);
}

#[test]
fn budgets_are_violated_last() {
    let nodes = [("n", vec![pod("web-1", 1, 500, 1), pod("db-1", 5, 500, 2)])];
    assert_eq!(chosen(500, &nodes, &[]).unwrap(), "n: web-1");
    let protected = [budget("web", 0)];
    assert_eq!(chosen(500, &nodes, &protected).unwrap(), "n: db-1");
    let allowed = [budget("web", 1)];
    assert_eq!(chosen(500, &nodes, &allowed).unwrap(), "n: web-1");
    // Without another choice, a budget is violated.
    assert_eq!(chosen(1000, &nodes, &protected).unwrap(), "n: db-1 web-1");
    let mut evicted = budget("web", 0);
    evicted.disrupted = ["web-1".to_owned()].into();
    assert_eq!(chosen(500, &nodes, &[evicted]).unwrap(), "n: web-1");
    let mut other = budget("web", 0);
    other.namespace = "other".into();
    assert_eq!(chosen(500, &nodes, &[other]).unwrap(), "n: web-1");
}

#[test]
fn the_node_with_the_cheapest_victims_is_chosen() {
    let whole = |name, priority, started| vec![pod(name, priority, 1000, started)];
    let halves = |name: &str, priority| {
        let pod = |number| pod(&format!("{name}-{number}"), priority, 500, 1);
        vec![pod(1), pod(2)]
    };
    // The node with the fewest violations.
    let nodes = [("n", whole("web-1", 1, 1)), ("m", whole("db-1", 9, 1))];
    assert_eq!(
        chosen(1000, &nodes, &[budget("web", 0)]).unwrap(),
        "m: db-1"
    );
    // The node with the lowest maximum priority.
    assert_eq!(chosen(1000, &nodes, &[]).unwrap(), "n: web-1");
    // The node with the lowest sum of priorities.
    let mut low = halves("low", 5);
    low[1].priority = -7;
    let nodes = [("n", halves("same", 5)), ("m", low)];
    assert_eq!(chosen(1000, &nodes, &[]).unwrap(), "m: low-1 low-2");
    // The node with the fewest victims, even if their priority is negative.
    let nodes = [("n", halves("half", -5)), ("m", whole("whole", -5, 1))];
    assert_eq!(chosen(1000, &nodes, &[]).unwrap(), "m: whole");
    // The node with the latest start of a victim.
    let nodes = [
        ("n", whole("old", 1, 1)),
        ("m", whole("new", 1, 9)),
        ("o", whole("middle", 1, 5)),
    ];
    assert_eq!(chosen(1000, &nodes, &[]).unwrap(), "m: new");
    // The first of equal nodes.
    let nodes = [("n", whole("one", 1, 1)), ("m", whole("two", 1, 1))];
    assert_eq!(chosen(1000, &nodes, &[]).unwrap(), "n: one");
}
