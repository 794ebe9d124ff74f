//! The status of PodDisruptionBudgets.

use longshore_client::{DeleteOptions, Patch};
use serde_json::{Value, json};

use crate::fixture::{Fixture, has_condition, until};

async fn budget(fixture: &Fixture, spec: Value) {
    let mut spec = spec;
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"}, "spec": spec});
    fixture.cluster.create(&budget, None).await.unwrap();
}

async fn deployment(fixture: &Fixture, replicas: u32) {
    let labels = json!({"app": "web"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels},
        "spec": {"containers": [crate::fixture::container()]},
    }}});
    fixture.cluster.create(&deployment, None).await.unwrap();
}

/// Waits until the status is up to date and has these numbers: expected, desired, healthy,
/// allowed.
async fn has_numbers(fixture: &Fixture, numbers: [i64; 4]) -> Value {
    let view = fixture.cluster.kind("poddisruptionbudgets").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    until(&format!("{numbers:?}"), async || {
        fixture.make_pods_ready().await;
        let raw = view.fetch("web").await.unwrap().raw().unwrap();
        let status = &raw["status"];
        let fields = [
            "expectedPods",
            "desiredHealthy",
            "currentHealthy",
            "disruptionsAllowed",
        ];
        let found = fields.map(|field| status[field].as_i64().unwrap_or(-1));
        let observed = status["observedGeneration"] == raw["metadata"]["generation"];
        (observed && found == numbers).then(|| status.clone())
    })
    .await
}

#[tokio::test]
async fn evictions_are_allowed_while_enough_pods_are_ready() {
    let fixture = Fixture::with_node().await;
    budget(&fixture, json!({"maxUnavailable": "50%"})).await;
    let status = has_numbers(&fixture, [0, 0, 0, 0]).await;
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    deployment(&fixture, 3).await;
    // Half of three pods is two, rounded up.
    let status = has_numbers(&fixture, [3, 1, 3, 2]).await;
    assert!(has_condition(&status, "DisruptionAllowed"));
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");

    let pods = fixture.pods().await;
    pods[0].evict(&DeleteOptions::default()).await.unwrap();
    pods[1].evict(&DeleteOptions::default()).await.unwrap();
    let refused = pods[2].evict(&DeleteOptions::default()).await.unwrap_err();
    assert_eq!(refused.code(), Some(429));
    // The evicted pods are replaced.
    until("the replacements", async || {
        fixture.end_pods(|_| None).await;
        (fixture.pods().await.len() == 3).then_some(())
    })
    .await;
    let status = has_numbers(&fixture, [3, 1, 3, 2]).await;
    assert!(status["disruptedPods"].is_null(), "{status}");

    let view = fixture.cluster.kind("poddisruptionbudgets").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    let least = Patch::merge(json!({"spec": {"maxUnavailable": null, "minAvailable": 3}}));
    view.patch("web", &least).await.unwrap();
    has_numbers(&fixture, [3, 3, 3, 0]).await;
}

#[tokio::test]
async fn pods_without_a_scalable_controller_allow_no_disruption() {
    let fixture = Fixture::with_node().await;
    budget(&fixture, json!({"maxUnavailable": 1})).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "alone", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [crate::fixture::container()]}});
    fixture.cluster.create(&pod, None).await.unwrap();
    has_numbers(&fixture, [0, 0, 1, 0]).await;
    until("the event", async || {
        let found = fixture.events("web", "UnmanagedPods").await;
        found
            .first()?
            .contains("(selector: &LabelSelector{")
            .then_some(())
    })
    .await;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "restartPolicy": "Never", "containers": [crate::fixture::container()]}}}});
    fixture.cluster.create(&job, None).await.unwrap();
    let view = fixture.cluster.kind("poddisruptionbudgets").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    let condition = until("the condition", async || {
        let raw = view.fetch("web").await.unwrap().raw().unwrap();
        let condition = raw["status"]["conditions"][0].clone();
        (condition["reason"] == "SyncFailed").then_some(condition)
    })
    .await;
    assert_eq!(
        condition["message"],
        "jobs.batch does not implement the scale subresource"
    );
}
