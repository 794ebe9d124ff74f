//! ResourceQuotas. The server charges objects, and the controller counts them.

use longshore_client::{DeleteOptions, Error, Patch};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

async fn quota(fixture: &Fixture, hard: Value) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}});
    fixture.cluster.create(&quota, None).await.unwrap();
}

async fn has_used(fixture: &Fixture, used: Value) {
    let view = fixture.cluster.kind("resourcequotas").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    until(&format!("usage {used}"), async || {
        let raw = view.fetch("q").await.unwrap().raw().unwrap();
        (raw["status"]["used"] == used && raw["status"]["hard"] == raw["spec"]["hard"])
            .then_some(())
    })
    .await;
}

async fn pod(fixture: &Fixture, name: &str) -> Result<(), Error> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [crate::fixture::container()]}});
    fixture.cluster.create(&pod, None).await.map(drop)
}

#[tokio::test]
async fn usage_follows_the_objects_of_the_namespace() {
    let fixture = Fixture::with_node().await;
    pod(&fixture, "a").await.unwrap();
    let hard = json!({"pods": "2", "requests.cpu": "1", "count/pods": "9", "services": "1"});
    quota(&fixture, hard).await;
    has_used(
        &fixture,
        json!({"pods": "1", "requests.cpu": "100m", "count/pods": "1", "services": "1"}),
    )
    .await;
    pod(&fixture, "b").await.unwrap();
    has_used(
        &fixture,
        json!({"pods": "2", "requests.cpu": "200m", "count/pods": "2", "services": "1"}),
    )
    .await;
    let refused = pod(&fixture, "c").await.unwrap_err();
    assert_eq!(refused.code(), Some(403));
    assert!(
        refused
            .to_string()
            .contains("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
        "{refused}"
    );
    // A pod that has ended uses nothing, but counts as an object.
    until("the end of the pods", async || {
        fixture
            .end_pods(|pod| (pod.name() == "a").then_some(0))
            .await;
        let pods = fixture.pods().await;
        pods.iter()
            .any(|pod| pod.raw().unwrap()["status"]["phase"] == "Succeeded")
            .then_some(())
    })
    .await;
    has_used(
        &fixture,
        json!({"pods": "1", "requests.cpu": "100m", "count/pods": "2", "services": "1"}),
    )
    .await;
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let now = DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    };
    pods.delete("a", &now).await.unwrap();
    pods.delete("b", &now).await.unwrap();
    has_used(
        &fixture,
        json!({"pods": "0", "requests.cpu": "0", "count/pods": "0", "services": "1"}),
    )
    .await;
    // New limits are counted, too.
    let view = fixture.cluster.kind("resourcequotas").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    let other = Patch::merge(json!({"spec": {"hard": {"pods": null, "requests.cpu": null,
        "count/pods": null, "services": "2", "configmaps": "5"}}}));
    view.patch("q", &other).await.unwrap();
    // The ConfigMap with the CA certificate.
    has_used(&fixture, json!({"services": "1", "configmaps": "1"})).await;
}

#[tokio::test]
async fn a_replica_set_stops_at_the_quota_and_continues_after_it_grows() {
    let fixture = Fixture::with_node().await;
    quota(&fixture, json!({"pods": "2"})).await;
    has_used(&fixture, json!({"pods": "0"})).await;
    let labels = json!({"app": "web"});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels},
        "spec": {"containers": [crate::fixture::container()]},
    }}});
    fixture.cluster.create(&set, None).await.unwrap();
    until("the failure", async || {
        let events = fixture.events("web", "FailedCreate").await;
        events
            .iter()
            .any(|text| text.contains("exceeded quota: q"))
            .then_some(())
    })
    .await;
    assert_eq!(fixture.pods().await.len(), 2);
    let view = fixture.cluster.kind("resourcequotas").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    view.patch("q", &Patch::merge(json!({"spec": {"hard": {"pods": "3"}}})))
        .await
        .unwrap();
    until("the third pod", async || {
        (fixture.pods().await.len() == 3).then_some(())
    })
    .await;
    has_used(&fixture, json!({"pods": "3"})).await;
}
