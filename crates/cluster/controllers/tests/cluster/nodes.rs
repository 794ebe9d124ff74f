//! Nodes that do not report, and taints that evict pods.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{Item, Patch, kinds::Pod};
use serde_json::{Value, json};

use crate::fixture::{Fixture, has_condition, until};

async fn pod(fixture: &Fixture, name: &str, tolerations: Value) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [crate::fixture::container()],
                 "tolerations": tolerations}});
    fixture.cluster.create(&pod, None).await.unwrap();
}

async fn fetch(fixture: &Fixture, name: &str) -> Item<Pod> {
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    pods.fetch(name).await.unwrap()
}

async fn is_evicted(fixture: &Fixture, name: &str) {
    until("the eviction", async || {
        let pod = fetch(fixture, name).await;
        let status = pod.raw().unwrap()["status"].clone();
        let is_deleting = pod.meta().deletion_timestamp.is_some();
        (is_deleting && has_condition(&status, "DisruptionTarget")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn taints_evict_the_pods_that_do_not_tolerate_them() {
    let fixture = Fixture::with_node().await;
    let tolerated = |seconds: Value| {
        json!([{"key": "broken", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": seconds}])
    };
    pod(&fixture, "stays", tolerated(json!(null))).await;
    pod(&fixture, "waits", tolerated(json!(3600))).await;
    pod(&fixture, "leaves", json!([])).await;
    let taints = |taints: Value| Patch::merge(json!({"spec": {"taints": taints}}));
    let broken = taints(json!([{"key": "broken", "effect": "NoExecute"}]));
    fixture.cluster.nodes().patch("n", &broken).await.unwrap();
    is_evicted(&fixture, "leaves").await;
    until("the event", async || {
        let found = fixture.events("leaves", "TaintManagerEviction").await;
        (found == ["Marking for deletion Pod default/leaves"]).then_some(())
    })
    .await;
    // A pod that is created later is also evicted.
    pod(&fixture, "late", json!([])).await;
    is_evicted(&fixture, "late").await;
    fixture
        .cluster
        .nodes()
        .patch("n", &taints(json!([])))
        .await
        .unwrap();
    until("the cancellation", async || {
        let found = fixture.events("waits", "TaintManagerEviction").await;
        (found == ["Cancelling deletion of Pod default/waits"]).then_some(())
    })
    .await;
    for name in ["stays", "waits"] {
        assert!(
            fetch(&fixture, name)
                .await
                .meta()
                .deletion_timestamp
                .is_none()
        );
    }
}

#[tokio::test]
async fn a_silent_node_is_tainted_and_its_pods_are_evicted() {
    let mut fixture = Fixture::with_node().await;
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}});
    fixture.cluster.nodes().create(&other).await.unwrap();
    let now = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 0}]);
    pod(&fixture, "a", now).await;
    fixture.make_pods_ready().await;
    fixture.stop_controllers().await;
    fixture
        .start_controllers_with(|options| {
            options.node_check_interval = Duration::from_millis(50);
            options.silent_node_delay = Some(Duration::from_secs(2));
        })
        .await;
    let taints = until("the taints", async || {
        // The other node reports.
        let heartbeat = Timestamp::now().to_string();
        let report = Patch::merge(json!({"status": {"conditions": [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat[..19].to_owned() + "Z"},
        ]}}));
        fixture.cluster.nodes().patch_status("other", &report).await.unwrap();
        let raw = fixture.cluster.nodes().fetch("n").await.unwrap().raw().unwrap();
        let taints = raw["spec"]["taints"].as_array()?;
        let keys = taints.iter().map(|taint| (taint["key"].clone(), taint["effect"].clone()));
        let keys: Vec<_> = keys.collect();
        (keys.len() == 2).then_some((keys, raw["status"]["conditions"][0].clone()))
    })
    .await;
    let unreachable = "node.kubernetes.io/unreachable";
    assert_eq!(
        taints.0,
        [
            (json!(unreachable), json!("NoSchedule")),
            (json!(unreachable), json!("NoExecute")),
        ]
    );
    assert_eq!(taints.1["status"], "Unknown");
    assert_eq!(taints.1["reason"], "NodeStatusUnknown");
    is_evicted(&fixture, "a").await;
    assert!(!has_condition(
        &fetch(&fixture, "a").await.raw().unwrap()["status"],
        "Ready"
    ));
    // The node reports again.
    fixture.set_node("1000").await;
    let back = Patch::merge(json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}]}}));
    fixture
        .cluster
        .nodes()
        .patch_status("n", &back)
        .await
        .unwrap();
    until("no taints", async || {
        let raw = fixture
            .cluster
            .nodes()
            .fetch("n")
            .await
            .unwrap()
            .raw()
            .unwrap();
        raw["spec"]["taints"]
            .as_array()
            .is_none_or(Vec::is_empty)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_gets_the_time_to_live_of_what_it_reads() {
    let fixture = Fixture::with_node().await;
    until("the annotation", async || {
        let node = fixture.cluster.nodes().fetch("n").await.unwrap();
        let annotations = &node.meta().annotations;
        (annotations.get("node.alpha.kubernetes.io/ttl")? == "0").then_some(())
    })
    .await;
}
