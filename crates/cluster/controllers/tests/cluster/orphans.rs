//! Pods whose node has been deleted.

use longshore_client::DeleteOptions;
use serde_json::json;

use crate::fixture::{Fixture, until};

#[tokio::test]
async fn pods_are_deleted_after_their_node() {
    let fixture = Fixture::with_node().await;
    let labels = json!({"app": "web"});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels},
        "spec": {"containers": [crate::fixture::container()]},
    }}});
    fixture.cluster.create(&set, None).await.unwrap();
    let bound = until("two bound pods", async || {
        let pods = fixture.pods().await;
        let bound = pods
            .iter()
            .filter(|pod| pod.raw().unwrap()["spec"]["nodeName"] == "n");
        let uids: Vec<String> = bound.map(|pod| pod.uid().to_owned()).collect();
        (uids.len() == 2).then_some(uids)
    })
    .await;
    fixture
        .cluster
        .nodes()
        .delete("n", &DeleteOptions::default())
        .await
        .unwrap();
    // The set creates others, which wait for a node.
    until("two other pods", async || {
        let pods = fixture.pods().await;
        let are_new = pods
            .iter()
            .all(|pod| !bound.contains(&pod.uid().to_owned()));
        (pods.len() == 2 && are_new).then_some(())
    })
    .await;
}
