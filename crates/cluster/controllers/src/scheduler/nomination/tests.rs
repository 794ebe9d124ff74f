//! The decisions of the state about pods that preempt others.
#![allow(clippy::unwrap_used)]

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::scheduler::state::Decision;

fn node(name: &str) -> Node {
    let node = json!({"metadata": {"name": name}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}}});
    serde_json::from_value(node).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("a", name)
}

/// A pod that requests a core, with a priority.
fn pod(name: &str, priority: i32, spec: Value) -> Pod {
    let mut whole = json!({"priority": priority, "containers": [
        {"name": "c", "resources": {"requests": {"cpu": "1"}}}]});
    let fields = spec.as_object().unwrap().clone();
    whole.as_object_mut().unwrap().extend(fields);
    let pod = json!({"metadata": {"name": name, "uid": name}, "spec": whole});
    serde_json::from_value(pod).unwrap()
}

fn on(node: &str) -> Value {
    json!({"nodeName": node})
}

/// A node `n` with two pods of the priority 1.
fn full() -> State {
    let mut state = State::default();
    state.put_node(&node("n"));
    state.put_pod(key("a"), &pod("a", 1, on("n")));
    state.put_pod(key("b"), &pod("b", 1, on("n")));
    state
}

/// The node and the victims of the next decision, which is a preemption.
fn preempted(state: &mut State) -> Option<(String, Vec<String>)> {
    match state.decide()? {
        Decision::Preempt { node, victims, .. } => {
            let victims = victims.into_iter().map(|victim| victim.key.name);
            Some((node, victims.collect()))
        }
        _ => None,
    }
}

fn bound(state: &mut State) -> Option<(String, String)> {
    match state.decide()? {
        Decision::Bind { key, node, .. } => Some((key.name, node)),
        _ => None,
    }
}

#[test]
fn a_pod_with_a_higher_priority_gets_the_room_of_its_victims() {
    let mut state = full();
    state.put_pod(key("p"), &pod("p", 5, json!({})));
    let victims = vec!["b".to_owned()];
    assert_eq!(preempted(&mut state), Some(("n".to_owned(), victims)));
    // Until the victim has ended, the pod waits. A change of a node does not change that.
    assert_eq!(state.decide(), None);
    state.put_pod(key("b"), &pod("b", 1, on("n")));
    state.put_node(&node("m-unready"));
    state.remove_node("m-unready");
    assert!(preempted(&mut state).is_none());
    // Pods with a lower priority must not use the nominated resources.
    state.put_pod(key("q"), &pod("q", 4, json!({})));
    state.remove_pod(&key("b"), "b");
    assert_eq!(bound(&mut state), Some(("p".to_owned(), "n".to_owned())));
}

#[test]
fn a_pod_that_has_a_requested_port_of_the_node_is_a_victim() {
    let wants = |number: u16| {
        let ports = json!([{"containerPort": 80, "hostPort": number}]);
        json!({"containers": [{"name": "c", "ports": ports}]})
    };
    let on_node = |number| {
        let mut spec = wants(number);
        spec["nodeName"] = "n".into();
        spec
    };
    let mut state = State::default();
    state.put_node(&node("n"));
    state.put_pod(key("a"), &pod("a", 1, on_node(8080)));
    state.put_pod(key("b"), &pod("b", 1, on_node(8081)));
    state.put_pod(key("p"), &pod("p", 5, wants(8081)));
    let victims = vec!["b".to_owned()];
    assert_eq!(preempted(&mut state), Some(("n".to_owned(), victims)));
    // A pod with the same priority waits until the port is free.
    state.put_pod(key("q"), &pod("q", 1, wants(8080)));
    let explained = state.decide();
    let expected = "0/1 nodes are available: 1 node(s) didn't have free ports for the \
                    requested pod ports.";
    let Some(Decision::Explain { message, .. }) = explained else {
        panic!("{explained:?}");
    };
    assert_eq!(message, expected);
    state.remove_pod(&key("a"), "a");
    assert_eq!(bound(&mut state), Some(("q".to_owned(), "n".to_owned())));
}

#[test]
fn the_room_is_for_pods_with_at_least_the_priority() {
    let mut state = full();
    state.put_pod(key("p"), &pod("p", 5, json!({})));
    assert!(preempted(&mut state).is_some());
    let mut nominated = pod("p", 5, json!({"schedulingGates": [{"name": "g"}]}));
    nominated.status = serde_json::from_value(json!({"nominatedNodeName": "n"})).unwrap();
    nominated.spec.as_mut().unwrap().scheduling_gates = None;
    state.put_pod(key("p"), &nominated);
    state.put_pod(key("low"), &pod("low", 1, json!({})));
    state.remove_pod(&key("b"), "b");
    // The pod itself comes first.
    assert_eq!(bound(&mut state), Some(("p".to_owned(), "n".to_owned())));
    assert_eq!(bound(&mut state), None);
}

#[test]
fn the_room_of_a_pod_that_is_deleted_is_for_others() {
    let mut state = full();
    let whole = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]});
    let mut large = pod("p", 5, whole);
    state.put_pod(key("p"), &large);
    assert!(preempted(&mut state).is_some());
    state.put_pod(key("low"), &pod("low", 1, json!({})));
    state.remove_pod(&key("a"), "a");
    // The resources of the first victim are nominated.
    while let Some(decision) = state.decide() {
        assert!(matches!(decision, Decision::Explain { .. }), "{decision:?}");
    }
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    large.metadata.deletion_timestamp = Some(time);
    state.put_pod(key("p"), &large);
    assert_eq!(bound(&mut state), Some(("low".to_owned(), "n".to_owned())));
}

#[test]
fn a_more_important_pod_takes_the_nomination() {
    let mut state = full();
    state.put_pod(key("p"), &pod("p", 5, json!({})));
    assert!(preempted(&mut state).is_some());
    state.put_pod(key("q"), &pod("q", 9, json!({})));
    let Some(Decision::Preempt {
        key: of,
        cleared,
        victims,
        ..
    }) = state.decide()
    else {
        panic!("no preemption");
    };
    assert_eq!((of, victims.len()), (key("q"), 1));
    let uid = "p".to_owned();
    assert_eq!(cleared, [Cleared { key: key("p"), uid }]);
}

#[test]
fn pods_that_may_not_preempt_wait() {
    for (priority, spec) in [
        (5, json!({"preemptionPolicy": "Never"})),
        (1, json!({})),
        (5, json!({"nodeSelector": {"disk": "ssd"}})),
    ] {
        let mut state = full();
        state.put_pod(key("p"), &pod("p", priority, spec));
        assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
        assert_eq!(state.decide(), None);
    }
}

#[test]
fn a_failed_preemption_is_tried_again() {
    let mut state = full();
    state.put_pod(key("p"), &pod("p", 5, json!({})));
    let Some(Decision::Preempt { victims, .. }) = state.decide() else {
        panic!("no preemption");
    };
    state.undo_preemption(&key("p"), "p", &victims);
    state.retry(&key("p"), "p");
    assert!(preempted(&mut state).is_some());
}

#[test]
fn counts_by_priority_follow_the_pods() {
    let mut state = full();
    assert_eq!(state.priorities, [(1, 2)].into());
    state.put_pod(key("a"), &pod("a", 1, on("n")));
    state.remove_pod(&key("b"), "b");
    assert_eq!(state.priorities, [(1, 1)].into());
    state.put_pod(key("c"), &pod("c", 3, json!({})));
    assert!(bound(&mut state).is_some());
    assert_eq!(state.priorities, [(1, 1), (3, 1)].into());
    state.unbind(&key("c"), "c");
    assert_eq!(state.priorities, [(1, 1)].into());
}
