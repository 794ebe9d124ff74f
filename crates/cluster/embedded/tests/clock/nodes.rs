//! Nodes that do or do not renew their Lease, and taints.

use longshore_client::{Cluster, Item, Patch, kinds};
use serde_json::{Value, json};

use crate::common::{HOUR, TIMEOUT, advance, advance_until, events, seconds, spec, start, wait};

fn ready(node: &Item<kinds::Node>) -> Value {
    let raw = node.raw().unwrap();
    let conditions = raw["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == "Ready");
    ready.map_or(Value::Null, |ready| ready["status"].clone())
}

fn taints(node: &Item<kinds::Node>) -> Vec<String> {
    let raw = node.raw().unwrap();
    let taints = raw["spec"]["taints"].as_array();
    let keys = taints.into_iter().flatten().map(|taint| &taint["key"]);
    keys.map(|key| key.as_str().unwrap().to_owned()).collect()
}

/// Creates a node that does not renew its Lease, and waits until the controller knows it.
async fn silent_node(cluster: &Cluster, name: &str, now: &str) {
    let nodes = cluster.nodes();
    nodes
        .create(&json!({"metadata": {"name": name}}))
        .await
        .unwrap();
    for status in ["False", "True"] {
        let condition = json!({"type": "Ready", "status": status, "reason": "Test",
            "lastHeartbeatTime": now, "lastTransitionTime": now});
        let patch = Patch::strategic(json!({"status": {"conditions": [condition]}}));
        nodes.patch_status(name, &patch).await.unwrap();
        let is_tainted = status == "False";
        let tainted = |node: &Item<_>| taints(node).is_empty() != is_tainted;
        nodes.wait(name, tainted, TIMEOUT).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_renew_its_lease_is_unreachable() {
    let embedded = start(true).await;
    let cluster = embedded.cluster();
    for round in 0..5 {
        let name = format!("silent-{round}");
        let now = embedded.clock().now();
        silent_node(&cluster, &name, &now.to_string()).await;
        // The node of the cluster renews its Lease.
        advance(&embedded, HOUR).await;
        let unknown = |node: &Item<_>| ready(node) == "Unknown";
        cluster.nodes().wait(&name, unknown, TIMEOUT).await.unwrap();
        let tainted = |node: &Item<_>| {
            taints(node)
                .iter()
                .any(|key| key == "node.kubernetes.io/unreachable")
        };
        cluster.nodes().wait(&name, tainted, TIMEOUT).await.unwrap();
        let own = cluster.nodes().fetch("longshore").await.unwrap();
        assert_eq!(ready(&own), "True");
        assert!(taints(&own).is_empty());
    }
    assert!(
        events(&cluster, "longshore", "NodeNotReady")
            .await
            .is_empty()
    );
    wait(async || {
        !events(&cluster, "silent-4", "NodeNotReady")
            .await
            .is_empty()
    })
    .await;
    let leases = cluster.leases().in_namespace("kube-node-lease").unwrap();
    let renewed = |lease: &Item<_>| {
        let time: Option<String> = lease.field(&["spec", "renewTime"]).unwrap();
        time.as_deref() == Some("2026-01-01T07:59:00.000000Z")
    };
    leases.wait("longshore", renewed, TIMEOUT).await.unwrap();
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_tolerates_a_taint_for_five_minutes() {
    let embedded = start(true).await;
    let cluster = embedded.cluster();
    let pods = cluster.pods().in_namespace("default").unwrap();
    let mut pod = spec("sleep 1000");
    pod["tolerations"] = json!([{"key": "maintenance", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 300}]);
    pods.create(&json!({"metadata": {"name": "tolerant"}, "spec": pod}))
        .await
        .unwrap();
    let running = longshore_client::until::ready;
    pods.wait("tolerant", running, TIMEOUT).await.unwrap();
    let taint = json!({"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}});
    cluster
        .nodes()
        .patch("longshore", &Patch::merge(taint))
        .await
        .unwrap();
    let gone = async || pods.find("tolerant").await.unwrap().is_none();
    let advanced = advance_until(&embedded, seconds(10), gone).await;
    assert!(advanced >= seconds(300), "{advanced:?}");
    embedded.stop().await;
}
