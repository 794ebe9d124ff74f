//! HorizontalPodAutoscalers. No node measures the resource usage, so these tests cover the limits
//! and the conditions.

use std::time::Duration;

use longshore_client::Patch;
use serde_json::{Value, json};

use crate::fixture::{Fixture, container, until};

async fn fixture() -> Fixture {
    let mut fixture = Fixture::with_node().await;
    fixture.stop_controllers().await;
    fixture
        .start_controllers_with(|options| {
            options.autoscaler_interval = Duration::from_millis(50);
        })
        .await;
    fixture
}

async fn create(fixture: &Fixture, object: &Value) {
    fixture.cluster.create(object, None).await.unwrap();
}

fn workload(api_version: &str, kind: &str, replicas: u32) -> Value {
    let labels = json!({"app": "web"});
    let selector = match kind {
        "ReplicationController" => labels.clone(),
        _ => json!({"matchLabels": labels}),
    };
    json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [container()]}}}})
}

fn autoscaler(name: &str, target: &Value, min: u32, max: u32) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minReplicas": min, "maxReplicas": max, "scaleTargetRef": {
            "apiVersion": target["apiVersion"], "kind": target["kind"], "name": "web"}}})
}

/// Waits until the status has the condition with this reason. Returns the status.
async fn has_reason(fixture: &Fixture, name: &str, kind: &str, reason: &str) -> Value {
    let view = fixture.cluster.kind("hpa").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    until(reason, async || {
        let status = view.fetch(name).await.unwrap().raw().unwrap()["status"].clone();
        let conditions = status["conditions"].as_array()?;
        let mut conditions = conditions.iter();
        conditions
            .any(|one| one["type"] == kind && one["reason"] == reason)
            .then_some(status)
    })
    .await
}

fn message(status: &Value, kind: &str) -> String {
    let mut conditions = status["conditions"].as_array().unwrap().iter();
    let condition = conditions.find(|one| one["type"] == kind).unwrap();
    condition["message"].as_str().unwrap().to_owned()
}

/// Waits until the target has these desired replicas.
async fn has_replicas(fixture: &Fixture, target: &Value, replicas: u32) {
    let words = ["apiVersion", "kind"].map(|field| target[field].as_str().unwrap());
    let view = fixture.cluster.kind_in(words[0], words[1]).await.unwrap();
    let view = view.in_namespace("default").unwrap();
    until("the replicas", async || {
        let raw = view.fetch("web").await.unwrap().raw().unwrap();
        (raw["spec"]["replicas"] == replicas).then_some(())
    })
    .await;
}

#[tokio::test]
async fn replicas_outside_the_limits_are_changed_for_each_kind_with_scale() {
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("v1", "ReplicationController"),
    ] {
        let fixture = fixture().await;
        let target = workload(api_version, kind, 1);
        create(&fixture, &target).await;
        create(&fixture, &autoscaler("web", &target, 3, 5)).await;
        has_replicas(&fixture, &target, 3).await;
        until("the event", async || {
            let events = fixture.events("web", "SuccessfulRescale").await;
            let text = "New size: 3; reason: Current number of replicas below Spec.MinReplicas";
            (events == [text]).then_some(())
        })
        .await;
        let reason = "FailedGetResourceMetric";
        let status = has_reason(&fixture, "web", "ScalingActive", reason).await;
        let problem = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
        assert_eq!(message(&status, "ScalingActive"), problem);
        assert_eq!(status["desiredReplicas"], 3);
        assert_eq!(status["currentReplicas"], 3);
        assert_eq!(status["observedGeneration"], 1);
        assert!(status["lastScaleTime"].is_string(), "{status}");
    }
}

#[tokio::test]
async fn a_custom_kind_with_scale_is_scaled() {
    let fixture = fixture().await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale = json!({"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "shops.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "shops", "kind": "Shop"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"scale": scale}}]}});
    create(&fixture, &definition).await;
    let shop = json!({"apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 9}});
    until("the kind", async || {
        fixture.cluster.create(&shop, None).await.ok()
    })
    .await;
    create(&fixture, &autoscaler("web", &shop, 1, 4)).await;
    has_replicas(&fixture, &shop, 4).await;
    let status = has_reason(&fixture, "web", "ScalingActive", "InvalidSelector").await;
    let problem = "the HPA target's scale is missing a selector";
    assert_eq!(message(&status, "ScalingActive"), problem);
}

#[tokio::test]
async fn a_missing_target_is_reported_and_a_stopped_one_is_not_scaled() {
    let fixture = fixture().await;
    let target = workload("apps/v1", "Deployment", 0);
    create(&fixture, &autoscaler("web", &target, 1, 4)).await;
    let status = has_reason(&fixture, "web", "AbleToScale", "FailedGetScale").await;
    let problem = "the HPA controller was unable to get the target's current scale: ";
    let missing = format!("{problem}deployments/scale.apps \"web\" not found");
    assert_eq!(message(&status, "AbleToScale"), missing);
    create(&fixture, &target).await;
    let status = has_reason(&fixture, "web", "ScalingActive", "ScalingDisabled").await;
    assert_eq!(status["desiredReplicas"], 0);
    has_reason(&fixture, "web", "AbleToScale", "SucceededGetScale").await;

    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Shop"});
    create(&fixture, &autoscaler("other", &unknown, 1, 4)).await;
    let status = has_reason(&fixture, "other", "AbleToScale", "FailedGetScale").await;
    let missing = format!("{problem}no matches for kind \"Shop\" in group \"example.com\"");
    assert_eq!(message(&status, "AbleToScale"), missing);
}

#[tokio::test]
async fn two_autoscalers_of_the_same_pods_are_reported() {
    let fixture = fixture().await;
    let target = workload("apps/v1", "Deployment", 1);
    create(&fixture, &target).await;
    until("the pod", async || {
        (fixture.pods().await.len() == 1).then_some(())
    })
    .await;
    create(&fixture, &autoscaler("a", &target, 1, 4)).await;
    create(&fixture, &autoscaler("b", &target, 1, 4)).await;
    let status = has_reason(&fixture, "a", "ScalingActive", "AmbiguousSelector").await;
    let problem = "pods by selector app=web are controlled by more than one HPA (e.g. [{a default} {b default}])";
    assert_eq!(message(&status, "ScalingActive"), problem);
    // After the change of the spec, the only remaining autoscaler scales immediately.
    let view = fixture.cluster.kind("hpa").await.unwrap();
    let view = view.in_namespace("default").unwrap();
    view.delete("b", &Default::default()).await.unwrap();
    let more = Patch::merge(json!({"spec": {"minReplicas": 2}}));
    view.patch("a", &more).await.unwrap();
    has_replicas(&fixture, &target, 2).await;
    has_reason(&fixture, "a", "ScalingActive", "FailedGetResourceMetric").await;
}
