//! The scheduler.

use serde_json::{Value, json};

use crate::fixture::{Fixture, container, until};

async fn explanation(fixture: &Fixture, message: &str) {
    until(message, async || {
        let pods = fixture.pods().await;
        let status: Value = pods[0].raw().unwrap()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions
            .into_iter()
            .find(|c| c["type"] == "PodScheduled")?;
        let right = condition["reason"] == "Unschedulable"
            && condition["status"] == "False"
            && condition["message"] == message;
        right.then_some(())
    })
    .await;
    until("event", async || {
        let events = fixture.events("p", "FailedScheduling").await;
        events.contains(&message.to_owned()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_unschedulable_pod_is_explained_and_bound_once_there_is_room() {
    let fixture = Fixture::start().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [container()]},
    });
    fixture.cluster.create(&pod, None).await.unwrap();
    explanation(&fixture, "no nodes available to schedule pods").await;
    fixture.add_node("50m").await;
    explanation(&fixture, "0/1 nodes are available: 1 Insufficient cpu.").await;
    fixture.set_node("100m").await;
    until("binding", async || {
        let pod = fixture.pods().await[0].raw().unwrap();
        (pod["spec"]["nodeName"] == "n").then_some(())
    })
    .await;
    until("event", async || {
        let events = fixture.events("p", "Scheduled").await;
        (events == ["Successfully assigned default/p to n"]).then_some(())
    })
    .await;
}

/// A pod that requests 600 of the node's 1000 millicores.
fn large(name: &str, class: &str) -> Value {
    let mut container = container();
    container["resources"]["requests"]["cpu"] = "600m".into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"priorityClassName": class, "containers": [container]},
    })
}

async fn create_class(fixture: &Fixture, name: &str, value: i32, policy: &str) {
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
    fixture.cluster.create(&class, None).await.unwrap();
}

async fn pod(fixture: &Fixture, name: &str) -> Option<Value> {
    let pods = fixture.pods().await;
    let pod = pods.iter().find(|pod| pod.name() == name)?;
    Some(pod.raw().unwrap())
}

/// Waits until the pod has a node.
async fn is_bound(fixture: &Fixture, name: &str) {
    until("the binding", async || {
        let pod = pod(fixture, name).await?;
        (pod["spec"]["nodeName"] == "n").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_with_a_higher_priority_preempts_one_with_a_lower_priority() {
    let fixture = Fixture::start().await;
    fixture.add_node("1").await;
    create_class(&fixture, "low", -1, "PreemptLowerPriority").await;
    create_class(&fixture, "patient", 1000, "Never").await;
    fixture
        .cluster
        .create(&large("low", "low"), None)
        .await
        .unwrap();
    is_bound(&fixture, "low").await;
    fixture.make_pods_ready().await;
    fixture
        .cluster
        .create(&large("patient", "patient"), None)
        .await
        .unwrap();
    until("the explanation", async || {
        let events = fixture.events("patient", "FailedScheduling").await;
        (!events.is_empty()).then_some(())
    })
    .await;
    assert!(pod(&fixture, "low").await.unwrap()["metadata"]["deletionTimestamp"].is_null());

    let critical = large("critical", "system-cluster-critical");
    fixture.cluster.create(&critical, None).await.unwrap();
    let victim = until("the deletion", async || {
        let victim = pod(&fixture, "low").await?;
        let deleted = &victim["metadata"]["deletionTimestamp"];
        (!deleted.is_null()).then_some(victim)
    })
    .await;
    assert_eq!(victim["metadata"]["deletionGracePeriodSeconds"], 30);
    let conditions = victim["status"]["conditions"].as_array().unwrap();
    let mut conditions = conditions.iter();
    let condition = conditions
        .find(|one| one["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(condition["reason"], "PreemptionByScheduler");
    let message = "default-scheduler: preempting to accommodate a higher priority pod";
    assert_eq!(condition["message"], message);

    let waiting = pod(&fixture, "critical").await.unwrap();
    assert_eq!(waiting["spec"]["priority"], 2_000_000_000);
    assert_eq!(waiting["status"]["nominatedNodeName"], "n");
    assert!(waiting["spec"]["nodeName"].is_null());
    let uid = waiting["metadata"]["uid"].as_str().unwrap();
    let message = format!("Preempted by pod {uid} on node n");
    until("the event", async || {
        let events = fixture.events("low", "Preempted").await;
        (events == [message.clone()]).then_some(())
    })
    .await;
    // After the victim has ended, the pod gets its resources.
    fixture.end_pods(|_| None).await;
    is_bound(&fixture, "critical").await;
    let bound = pod(&fixture, "critical").await.unwrap();
    assert!(bound["status"]["nominatedNodeName"].is_null());
    let patient = pod(&fixture, "patient").await.unwrap();
    assert!(patient["spec"]["nodeName"].is_null());
}

#[tokio::test]
async fn a_budget_protects_pods_from_preemption_if_there_are_others() {
    let fixture = Fixture::start().await;
    fixture.add_node("1300m").await;
    create_class(&fixture, "high", 1000, "PreemptLowerPriority").await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}}});
    fixture.cluster.create(&budget, None).await.unwrap();
    for name in ["a", "b"] {
        fixture
            .cluster
            .create(&large(name, ""), None)
            .await
            .unwrap();
        is_bound(&fixture, name).await;
    }
    fixture.make_pods_ready().await;
    fixture
        .cluster
        .create(&large("high", "high"), None)
        .await
        .unwrap();
    until("the deletion", async || {
        let victim = pod(&fixture, "a").await?;
        (!victim["metadata"]["deletionTimestamp"].is_null()).then_some(())
    })
    .await;
    assert!(pod(&fixture, "b").await.unwrap()["metadata"]["deletionTimestamp"].is_null());
}

#[tokio::test]
async fn a_pod_waits_for_a_port_of_the_node_until_the_pod_with_it_is_gone() {
    let fixture = Fixture::start().await;
    fixture.add_node("1").await;
    let with_port = |name: &str| {
        let mut container = container();
        container["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container]},
        })
    };
    fixture
        .cluster
        .create(&with_port("first"), None)
        .await
        .unwrap();
    is_bound(&fixture, "first").await;
    fixture
        .cluster
        .create(&with_port("second"), None)
        .await
        .unwrap();
    let expected = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested \
                    pod ports.";
    until("the explanation", async || {
        let events = fixture.events("second", "FailedScheduling").await;
        (events == [expected]).then_some(())
    })
    .await;
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let now = longshore_client::DeleteOptions {
        grace_seconds: Some(0),
        ..Default::default()
    };
    pods.delete("first", &now).await.unwrap();
    is_bound(&fixture, "second").await;
}
