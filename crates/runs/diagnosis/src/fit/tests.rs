//! Tests of tasks that fit nodes, or do not.
#![allow(clippy::unwrap_used)]

use longshore_model::facts::PodSpec;
use serde_json::{Value, json};

use super::*;

fn node(name: &str, allocatable: Value, extra: Value) -> NodeFacts {
    let labels = extra["labels"].clone();
    let taints = extra["taints"].clone();
    let value = json!({
        "metadata": {
            "name": name,
            "labels": if labels.is_null() { json!({}) } else { labels },
        },
        "spec": {"taints": if taints.is_null() { json!([]) } else { taints }},
        "status": {"allocatable": allocatable},
    });
    serde_json::from_value(value).unwrap()
}

fn need(spec: Value) -> Need {
    let spec: PodSpec = serde_json::from_value(spec).unwrap();
    Need::of(&spec)
}

fn asks(amounts: Value) -> Value {
    json!({"containers": [{"name": "main", "resources": {"requests": amounts}}]})
}

fn verdict(spec: Value, nodes: &[NodeFacts]) -> String {
    match check(&need(spec), nodes) {
        Ok(()) => "fits".to_owned(),
        Err(misfit) => misfit.tell().0,
    }
}

#[test]
fn resources() {
    let nodes = [
        node("small", json!({"cpu": "2", "memory": "4Gi"}), json!({})),
        node(
            "large",
            json!({"cpu": "7910m", "memory": "31Gi", "nvidia.com/gpu": "1"}),
            json!({}),
        ),
    ];
    assert_eq!(verdict(asks(json!({"cpu": "7"})), &nodes), "fits");
    assert_eq!(
        verdict(asks(json!({"cpu": "8"})), &nodes),
        "it fits on no node: it requests 8 of cpu, and the largest node, large, has 7910m"
    );
    assert_eq!(
        verdict(asks(json!({"memory": "64Gi"})), &nodes),
        "it fits on no node: it requests 64Gi of memory, and the largest node, large, has 31Gi"
    );
    assert_eq!(
        verdict(asks(json!({"amd.com/gpu": 1})), &nodes),
        "it fits on no node: it requests 1 of amd.com/gpu, and no node has any"
    );
    let both = asks(json!({"cpu": "2", "memory": "4Gi"}));
    assert_eq!(verdict(both, &nodes[..1]), "fits");
    // Without visible nodes, the task may fit.
    assert_eq!(verdict(asks(json!({"cpu": "64"})), &[]), "fits");
}

#[test]
fn each_node_lacks_another_requirement() {
    let nodes = [
        node("wide", json!({"cpu": "8", "memory": "1Gi"}), json!({})),
        node("deep", json!({"cpu": "1", "memory": "64Gi"}), json!({})),
    ];
    let text = verdict(asks(json!({"cpu": "4", "memory": "32Gi"})), &nodes);
    assert!(text.contains("each node lacks something"), "{text}");
}

#[test]
fn labels() {
    let nodes = [node(
        "a",
        json!({"pods": "9"}),
        json!({"labels": {"zone": "west"}}),
    )];
    let select = |key: &str, value: &str| json!({"nodeSelector": {key: value}});
    assert_eq!(verdict(select("zone", "west"), &nodes), "fits");
    assert!(verdict(select("zone", "east"), &nodes).ends_with("none has the label zone=east"));
    let affinity = |rule: Value| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [rule]}],
        }}}})
    };
    let rule = |operator: &str, values: Value| json!({"key": "zone", "operator": operator, "values": values});
    assert_eq!(
        verdict(affinity(rule("In", json!(["east", "west"]))), &nodes),
        "fits"
    );
    assert_eq!(verdict(affinity(rule("Exists", json!([]))), &nodes), "fits");
    let text = verdict(affinity(rule("NotIn", json!(["west"]))), &nodes);
    assert!(text.ends_with("the label zone NotIn (west)"), "{text}");
    let text = verdict(affinity(rule("In", json!(["east"]))), &nodes);
    assert!(text.ends_with("the label zone=east"), "{text}");
}

#[test]
fn taints() {
    let tainted = |key: &str, effect: &str| {
        let taints = json!([{"key": key, "value": "yes", "effect": effect}]);
        [node("a", json!({"pods": "9"}), json!({"taints": taints}))]
    };
    let text = verdict(json!({}), &tainted("gpu", "NoSchedule"));
    assert!(text.contains("have taints gpu=yes:NoSchedule"), "{text}");
    assert_eq!(
        verdict(json!({}), &tainted("gpu", "PreferNoSchedule")),
        "fits"
    );
    // The cluster removes these taints by itself.
    let passing = tainted("node.kubernetes.io/unreachable", "NoExecute");
    assert_eq!(verdict(json!({}), &passing), "fits");
    for toleration in [
        json!({"operator": "Exists"}),
        json!({"key": "gpu", "operator": "Exists"}),
        json!({"key": "gpu", "value": "yes", "effect": "NoSchedule"}),
    ] {
        let spec = json!({"tolerations": [toleration]});
        assert_eq!(verdict(spec, &tainted("gpu", "NoSchedule")), "fits");
    }
    let spec = json!({"tolerations": [{"key": "gpu", "value": "no"}]});
    assert_ne!(verdict(spec, &tainted("gpu", "NoSchedule")), "fits");
}

#[test]
fn init_containers_count_if_they_request_more() {
    let spec = json!({
        "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "500m"}}}],
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"resources": {"requests": {"cpu": "3"}}},
        ],
        "overhead": {"cpu": "250m"},
    });
    let spec: PodSpec = serde_json::from_value(spec).unwrap();
    assert_eq!(need::requests(&spec)["cpu"], 4.25);
    assert_eq!(need::limits(&spec)["cpu"], 0.75);
}

#[test]
fn autoscalers_are_detected() {
    let plain = [node("a", json!({}), json!({}))];
    assert!(!may_grow(&plain));
    let managed = json!({"labels": {"karpenter.sh/nodepool": "default"}});
    assert!(may_grow(&[node("b", json!({}), managed)]));
}
