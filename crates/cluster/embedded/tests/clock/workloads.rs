//! Deployments and StatefulSets, without a node.

use serde_json::{Value, json};

use crate::common::{TIMEOUT, advance, seconds, spec, start};

fn progressing(item: &Value) -> Value {
    let conditions = item["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|one| one["type"] == "Progressing");
    found.cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_exceeds_its_progress_deadline() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    let deployments = cluster.deployments().in_namespace("default").unwrap();
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec("sleep 1000")}}});
    deployments.create(&deployment).await.unwrap();
    let updated = |item: &longshore_client::Item<_>| {
        progressing(&item.raw().unwrap())["reason"] == "ReplicaSetUpdated"
    };
    deployments.wait("web", updated, TIMEOUT).await.unwrap();
    advance(&embedded, seconds(599)).await;
    let item = deployments.fetch("web").await.unwrap();
    assert_eq!(progressing(&item.raw().unwrap())["status"], "True");
    // The controller checks a second later, like Kubernetes' controller.
    advance(&embedded, seconds(2)).await;
    let exceeded = |item: &longshore_client::Item<_>| {
        progressing(&item.raw().unwrap())["reason"] == "ProgressDeadlineExceeded"
    };
    let item = deployments.wait("web", exceeded, TIMEOUT).await.unwrap();
    let condition = progressing(&item.raw().unwrap());
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["lastTransitionTime"], "2026-01-01T03:09:01Z");
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_available_after_min_ready_seconds() {
    let embedded = start(true).await;
    let cluster = embedded.cluster();
    let deployments = cluster.deployments().in_namespace("default").unwrap();
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "minReadySeconds": 300, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec("sleep 1000")}}});
    deployments.create(&deployment).await.unwrap();
    let count = |item: &longshore_client::Item<_>, name: &str| {
        let count: Option<u32> = item.field(&["status", name]).unwrap();
        count.unwrap_or(0)
    };
    let ready = |item: &longshore_client::Item<_>| count(item, "readyReplicas") == 1;
    let item = deployments.wait("web", ready, TIMEOUT).await.unwrap();
    assert_eq!(count(&item, "availableReplicas"), 0);
    advance(&embedded, seconds(300)).await;
    let available = |item: &longshore_client::Item<_>| count(item, "availableReplicas") == 1;
    deployments.wait("web", available, TIMEOUT).await.unwrap();
    embedded.stop().await;
}
