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
