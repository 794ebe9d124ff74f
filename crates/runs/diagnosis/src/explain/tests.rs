//! Each cause is derived from its evidence.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn pod(status: Value) -> PodFacts {
    serde_json::from_value(json!({
        "spec": {
            "initContainers": [{"name": "fetch", "image": "trainer:1"}],
            "containers": [{"name": "main", "image": "trainer:1", "command": ["longshore", "bootstrap", "exec", "--", "train"]}],
        },
        "status": status,
    }))
    .unwrap()
}

fn waiting(reason: &str, message: &str) -> (String, WaitLimit) {
    let (why, limit) = stuck(
        &pod(json!({"phase": "Pending", "containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}},
        ]})),
        &ClusterEvidence::default(),
    )
    .unwrap();
    (why.to_string(), limit)
}

fn failed(terminated: Value) -> (String, bool) {
    let (why, ran) = failure(
        &pod(json!({"phase": "Failed", "containerStatuses": [
            {"name": "main", "state": {"terminated": terminated}},
        ]})),
        None,
        &ClusterEvidence::default(),
    );
    (why.to_string(), ran)
}

#[test]
fn waiting_containers() {
    let (text, _) = waiting("ImagePullBackOff", "unauthorized");
    assert_eq!(
        text,
        "the registry denies access to the image \"trainer:1\": unauthorized; check the image's name; for a private registry, set a Secret in `image_pull_secrets`"
    );
    let (text, limit) = waiting("ErrImageNeverPull", "");
    assert!(text.contains("is not on the node") && limit == WaitLimit::None);
    let (text, _) = waiting("CreateContainerConfigError", "secret \"keys\" not found");
    assert!(text.contains("the Secret \"keys\" is missing"));
    assert_eq!(
        stuck(
            &pod(json!({"phase": "Pending", "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}},
            ]})),
            &ClusterEvidence::default()
        ),
        None
    );
}

#[test]
fn a_pod_on_an_unreachable_node() {
    let mut running = pod(json!({"phase": "Running",
        "conditions": [{"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "main", "state": {"running": {}}}],
    }));
    running.metadata.name = "train-0".into();
    running.spec.node_name = "a".into();
    let event = |reason: &str| {
        serde_json::from_value(json!({
            "reason": reason, "involvedObject": {"kind": "Pod", "name": "train-0"},
        }))
        .unwrap()
    };
    let mut cluster = ClusterEvidence {
        events: vec![event("Killing")],
        ..ClusterEvidence::default()
    };
    assert_eq!(away(&running, &cluster), None);
    cluster.events.push(event("NodeNotReady"));
    let found = away(&running, &cluster).unwrap();
    assert_eq!(found.kind, Cause::NodeLost);
    assert!(found.cause.starts_with("its node \"a\" does not answer"));

    // If the node is visible, events are ignored, because they remain after the node has recovered.
    let node = |ready: &str| {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let node = json!({"metadata": {"name": "a"}, "status": {"conditions": conditions}});
        Some(crate::fit::Nodes {
            seen: vec![serde_json::from_value(node).unwrap()],
            more: false,
        })
    };
    cluster.nodes = node("True");
    assert_eq!(away(&running, &cluster), None);
    cluster.nodes = node("Unknown");
    assert!(away(&running, &cluster).is_some());
    let waiting = pod(json!({"phase": "Pending"}));
    assert_eq!(away(&waiting, &cluster), None);
}

#[test]
fn unschedulable_pods() {
    let remedy = |message: &str| {
        let status = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
        ]});
        stuck(&pod(status), &ClusterEvidence::default())
            .unwrap()
            .0
            .remedy
    };
    assert!(
        remedy("0/3 nodes are available: 3 Insufficient nvidia.com/gpu, 1 x")
            .starts_with("request less nvidia.com/gpu,")
    );
    assert!(remedy("1 node(s) had untolerated taint {a: b}").contains("taint"));
    assert!(
        remedy("1 node(s) didn't match Pod's node affinity/selector").contains("node_selector")
    );
}

#[test]
fn ended_commands() {
    assert_eq!(
        failed(json!({"exitCode": 2})).0,
        "its command ended with exit code 2; read its log"
    );
    assert!(
        failed(json!({"exitCode": 137, "reason": "OOMKilled"}))
            .0
            .contains("out of memory")
    );
    assert!(
        failed(json!({"exitCode": 137}))
            .0
            .contains("too little memory")
    );
    assert!(failed(json!({"exitCode": 143})).0.contains("terminated ("));
    let (text, ran) =
        failed(json!({"exitCode": 128, "reason": "StartError", "message": "longshore: not found"}));
    assert!(text.contains("launcher_image") && !ran);
    let (text, ran) =
        failed(json!({"exitCode": 127, "message": "longshore: command not found: train"}));
    assert!(
        text.starts_with("command not found: train; check") && !ran,
        "{text}"
    );
}

#[test]
fn failed_pods() {
    let text = |status| {
        failure(&pod(status), None, &ClusterEvidence::default())
            .0
            .to_string()
    };
    assert!(
        text(json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}))
            .contains("evicted it: low on memory")
    );
    assert!(text(json!({"phase": "Failed", "reason": "DeadlineExceeded"})).contains("deadline"));
    assert!(text(json!({"phase": "Failed", "reason": "NodeLost"})).contains("its node was lost"));
    assert!(text(json!({"phase": "Failed"})).contains("no reason given"));
}
