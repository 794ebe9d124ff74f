//! Affinity to pods, anti-affinity and spread constraints.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::scheduler::choose::{Needs, NodeFacts};

fn node(name: &str, zone: &str) -> NodeFacts {
    let mut labels = json!({"host": name});
    if !zone.is_empty() {
        labels["zone"] = json!(zone);
    }
    let node = json!({"metadata": {"name": name, "labels": labels}});
    NodeFacts::of(&serde_json::from_value::<Node>(node).unwrap())
}

struct Placed {
    labels: BTreeMap<String, String>,
    needs: Needs,
    rules: Option<Rules>,
}

fn pod(app: &str, spec: Value) -> Placed {
    let mut spec = spec;
    spec["containers"] = json!([]);
    let pod = json!({"metadata": {"labels": {"app": app}}, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let labels = pod.metadata.labels.clone().unwrap();
    let rules = Rules::of(pod.spec.as_ref().unwrap(), "default", &labels);
    Placed {
        labels,
        needs: Needs::of(&pod),
        rules,
    }
}

fn affinity(kind: &str, app: &str, key: &str) -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key});
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

/// Returns the problem of each node for a pod, with other pods on nodes.
fn problems(
    subject: &Placed,
    nodes: &[NodeFacts],
    others: &[(&Placed, usize)],
) -> Vec<Option<&'static str>> {
    let neighbors: Vec<Neighbor<'_>> = others
        .iter()
        .map(|(placed, node)| Neighbor {
            namespace: "default",
            labels: &placed.labels,
            rules: placed.rules.as_ref(),
            is_terminating: false,
            node: &nodes[*node],
        })
        .collect();
    let placement = Placement::of(
        ("default", &subject.labels),
        (&subject.needs, subject.rules.as_ref()),
        nodes.iter(),
        &neighbors,
    );
    nodes.iter().map(|node| placement.problem(node)).collect()
}

fn nodes() -> [NodeFacts; 4] {
    [
        node("0", "a"),
        node("1", "a"),
        node("2", "b"),
        node("3", ""),
    ]
}

#[test]
fn affinity_requires_the_domain_of_the_other_pods() {
    let nodes = nodes();
    let wrong = Some("node(s) didn't match pod affinity rules");
    let subject = pod("web", affinity("podAffinity", "db", "zone"));
    let db = pod("db", json!({}));
    assert_eq!(problems(&subject, &nodes, &[]), [wrong; 4]);
    let expected = [None, None, wrong, wrong];
    assert_eq!(problems(&subject, &nodes, &[(&db, 1)]), expected);
    // The first pod of a group needs only the label.
    let first = pod("web", affinity("podAffinity", "web", "zone"));
    let expected = [None, None, None, wrong];
    assert_eq!(problems(&first, &nodes, &[(&db, 1)]), expected);
    let expected = [wrong, wrong, None, wrong];
    assert_eq!(problems(&first, &nodes, &[(&first, 2)]), expected);
}

#[test]
fn anti_affinity_excludes_domains_for_both_pods() {
    let nodes = nodes();
    let subject = pod("web", affinity("podAntiAffinity", "web", "host"));
    let wrong = Some("node(s) didn't match pod anti-affinity rules");
    let expected = [wrong, None, None, None];
    assert_eq!(problems(&subject, &nodes, &[(&subject, 0)]), expected);
    let plain = pod("web", json!({}));
    let wrong = Some("node(s) didn't satisfy existing pods anti-affinity rules");
    let expected = [None, wrong, None, None];
    assert_eq!(problems(&plain, &nodes, &[(&subject, 1)]), expected);
    let other = pod("db", json!({}));
    assert_eq!(problems(&other, &nodes, &[(&subject, 1)]), [None; 4]);
}

#[test]
fn constraints_limit_the_skew() {
    let nodes = nodes();
    let spread = |more: Value| {
        let mut constraint = json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        });
        let fields = constraint.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        pod("web", json!({"topologySpreadConstraints": [constraint]}))
    };
    let subject = spread(json!({}));
    let wrong = Some("node(s) didn't match pod topology spread constraints");
    let no_label =
        Some("node(s) didn't match pod topology spread constraints (missing required label)");
    let expected = [wrong, wrong, None, no_label];
    assert_eq!(problems(&subject, &nodes, &[(&subject, 0)]), expected);
    let both = [(&subject, 0), (&subject, 2)];
    assert_eq!(
        problems(&subject, &nodes, &both),
        [None, None, None, no_label]
    );
    // There are fewer domains than required, so the minimum number of pods counts as zero.
    let three = spread(json!({"minDomains": 3}));
    assert_eq!(
        problems(&three, &nodes, &both),
        [wrong, wrong, wrong, no_label]
    );
    let soft = spread(json!({"whenUnsatisfiable": "ScheduleAnyway"}));
    assert_eq!(problems(&soft, &nodes, &[(&soft, 0)]), [None; 4]);
}
