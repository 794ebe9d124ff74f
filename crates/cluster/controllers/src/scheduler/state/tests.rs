//! Tests of the decisions.

#![allow(clippy::unwrap_used)]

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::volumes::facts::ClassFacts;

fn node(cpu: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
                   "allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"}}
    }))
    .unwrap()
}

fn pod(cpu: &str, more: Value) -> Pod {
    let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": {"uid": "u"}, "spec": spec})).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("a", name)
}

fn bound(decision: Option<Decision>) -> Option<String> {
    match decision? {
        Decision::Bind { key, .. } => Some(key.name),
        Decision::RequestVolumes { .. }
        | Decision::Explain { .. }
        | Decision::Preempt { .. }
        | Decision::Panicked { .. } => None,
    }
}

#[test]
fn a_pending_binding_counts_as_used() {
    let mut state = State::default();
    state.put_node(&node("2"));
    state.put_pod(key("p"), &pod("1", json!({})));
    state.put_pod(key("q"), &pod("1", json!({})));
    state.put_pod(key("r"), &pod("1", json!({})));
    assert_eq!(bound(state.decide()).as_deref(), Some("p"));
    assert_eq!(bound(state.decide()).as_deref(), Some("q"));
    let message = "0/1 nodes are available: 1 Insufficient cpu.".to_owned();
    let explain = Decision::Explain {
        key: key("r"),
        uid: "u".into(),
        message,
        since: None,
    };
    assert_eq!(state.decide(), Some(explain));
    assert_eq!(state.decide(), None);
    // The watch still reports the old state of a pod that is being bound.
    state.put_pod(key("p"), &pod("1", json!({})));
    assert_eq!(state.decide(), None);
    // The watch reports the binding, then the pod finishes, so the third pod
    // fits.
    state.put_pod(key("p"), &pod("1", json!({"nodeName": "n"})));
    assert_eq!(state.decide(), None);
    let mut done = pod("1", json!({"nodeName": "n"}));
    done.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
    state.put_pod(key("p"), &done);
    assert_eq!(bound(state.decide()).as_deref(), Some("r"));
}

#[test]
fn unschedulable_pods_wait_for_a_change_and_are_reported_once() {
    let mut state = State::default();
    state.put_pod(key("p"), &pod("1", json!({})));
    assert!(
        matches!(state.decide(), Some(Decision::Explain { message, .. })
        if message == "no nodes available to schedule pods")
    );
    state.put_pod(key("p"), &pod("1", json!({})));
    assert_eq!(state.decide(), None);
    state.put_node(&node("500m"));
    assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
    state.put_node(&node("500m"));
    assert_eq!(state.decide(), None);
    state.put_node(&node("600m"));
    assert_eq!(state.decide(), None);
    state.put_node(&node("1"));
    assert_eq!(bound(state.decide()).as_deref(), Some("p"));
}

#[test]
fn a_failed_binding_frees_the_resources_and_is_retried() {
    let mut state = State::default();
    state.put_node(&node("1"));
    state.put_pod(key("p"), &pod("1", json!({})));
    assert!(bound(state.decide()).is_some());
    state.unbind(&key("p"), "u");
    assert_eq!(state.decide(), None);
    state.retry(&key("p"), "u");
    assert_eq!(bound(state.decide()).as_deref(), Some("p"));
}

#[test]
fn a_pod_that_was_resized_leaves_room_when_its_node_says_so() {
    let mut state = State::default();
    state.put_node(&node("2"));
    state.put_pod(key("p"), &pod("2", json!({"nodeName": "n"})));
    state.put_pod(key("q"), &pod("1", json!({})));
    assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
    let resized = |actual: &str| {
        let mut resized = pod("1", json!({"nodeName": "n"}));
        let status = json!({"containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResources": {"cpu": actual}, "resources": {"requests": {"cpu": actual}},
        }]});
        resized.status = serde_json::from_value(status).unwrap();
        resized
    };
    state.put_pod(key("p"), &resized("2"));
    assert_eq!(state.decide(), None);
    state.put_pod(key("p"), &resized("1"));
    assert_eq!(bound(state.decide()).as_deref(), Some("q"));
}

#[test]
fn pods_of_other_schedulers_are_ignored() {
    let mut state = State::default();
    state.put_node(&node("9"));
    let mut going = pod("1", json!({}));
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        Timestamp::UNIX_EPOCH,
    ));
    for other in [
        pod("1", json!({"schedulerName": "other"})),
        pod("1", json!({"schedulingGates": [{"name": "g"}]})),
        pod("1", json!({"nodeName": "n"})),
        going,
    ] {
        state.put_pod(key("p"), &other);
        assert_eq!(state.decide(), None);
    }
}

#[test]
fn pods_with_higher_priority_come_first() {
    let mut state = State::default();
    state.put_pod(key("a"), &pod("1", json!({})));
    state.put_pod(
        key("b"),
        &pod("1", json!({"priority": 7, "schedulerName": NAME})),
    );
    state.put_node(&node("9"));
    assert_eq!(bound(state.decide()).as_deref(), Some("b"));
    assert_eq!(bound(state.decide()).as_deref(), Some("a"));
}

fn standard_class() -> ClassFacts {
    let waits = json!({"volumeBindingMode": "WaitForFirstConsumer"});
    crate::volumes::testing::class("standard", waits)
}

fn with_claim(name: &str) -> Pod {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    let mut pod = pod("1", json!({"volumes": volumes}));
    pod.metadata.name = Some(name.into());
    pod
}

#[test]
fn a_pod_is_bound_when_its_claims_have_volumes() {
    let mut state = State::default();
    state.put_class(standard_class());
    state.put_node(&node("1"));
    state.put_pod(key("p"), &with_claim("p"));
    assert!(
        matches!(state.decide(), Some(Decision::Explain { message, .. })
        if message == "0/1 nodes are available: persistentvolumeclaim \"c\" not found.")
    );
    let namespace = key("p").namespace;
    let mut claim = crate::volumes::testing::claim(json!({"storageClassName": "standard"}));
    claim.key.namespace.clone_from(&namespace);
    state.put_claim(claim.clone());
    let requested = state.decide();
    let Some(Decision::RequestVolumes { node, requests, .. }) = requested else {
        panic!("{requested:?}");
    };
    assert_eq!((node.as_str(), requests.provision.len()), ("n", 1));
    // Meanwhile the resources of the pod are in use.
    state.put_pod(key("q"), &pod("1", json!({})));
    assert!(matches!(state.decide(), Some(Decision::Explain { .. })));
    claim
        .annotations
        .insert("volume.kubernetes.io/selected-node".into(), "n".into());
    claim.version = "2".into();
    state.put_claim(claim.clone());
    state.await_volumes(&key("p"), "u");
    assert_eq!(state.decide(), None);
    let mut volume = crate::volumes::testing::volume("v", json!({}));
    volume.phase = "Bound".into();
    state.put_volume(volume);
    claim
        .annotations
        .insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    claim.volume = "v".into();
    claim.phase = "Bound".into();
    claim.version = "3".into();
    state.put_claim(claim);
    assert_eq!(bound(state.decide()).as_deref(), Some("p"));
    assert_eq!(state.decide(), None);
}

#[test]
fn a_pod_whose_claim_has_lost_its_node_is_scheduled_again() {
    let mut state = State::default();
    state.put_class(standard_class());
    state.put_node(&node("1"));
    let mut claim = crate::volumes::testing::claim(json!({"storageClassName": "standard"}));
    claim.key.namespace = key("p").namespace;
    state.put_claim(claim);
    state.put_pod(key("p"), &with_claim("p"));
    assert!(matches!(
        state.decide(),
        Some(Decision::RequestVolumes { .. })
    ));
    state.await_volumes(&key("p"), "u");
    assert!(matches!(
        state.decide(),
        Some(Decision::RequestVolumes { .. })
    ));
}
