//! ReplicaSets and ReplicationControllers.

use longshore_client::{DeleteOptions, Patch, Propagation};
use serde_json::{Value, json};

use crate::fixture::{Fixture, until};

/// The kind, its API version, and a selector of `app=web` in its format.
fn kinds() -> [(&'static str, &'static str, Value); 2] {
    [
        (
            "ReplicaSet",
            "apps/v1",
            json!({"matchLabels": {"app": "web"}}),
        ),
        ("ReplicationController", "v1", json!({"app": "web"})),
    ]
}

async fn create(fixture: &Fixture, kind: &(&str, &str, Value), replicas: u32) {
    let set = json!({
        "apiVersion": kind.1, "kind": kind.0,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": kind.2, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [crate::fixture::container()]},
        }},
    });
    fixture.cluster.create(&set, None).await.unwrap();
}

async fn view(
    fixture: &Fixture,
    kind: &str,
) -> longshore_client::View<longshore_client::kinds::Any> {
    let view = fixture.cluster.kind(kind).await.unwrap();
    view.in_namespace("default").unwrap()
}

async fn has_pods(fixture: &Fixture, count: usize) {
    until("the expected number of pods", async || {
        fixture.end_pods(|_| None).await;
        (fixture.pods().await.len() == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn scaling_up_and_down_updates_the_status() {
    for kind in kinds() {
        let fixture = Fixture::with_node().await;
        create(&fixture, &kind, 3).await;
        has_pods(&fixture, 3).await;
        for pod in fixture.pods().await {
            let owner = pod.meta().controller().unwrap();
            assert_eq!((owner.kind.as_str(), owner.name.as_str()), (kind.0, "web"));
            assert_eq!(owner.block_owner_deletion, Some(true));
            assert_eq!(pod.meta().generate_name.as_deref(), Some("web-"));
        }
        let view = view(&fixture, kind.0).await;
        let status = async |field: &'static str, count: u32| {
            until(field, async || {
                // The scheduler may bind a pod late.
                fixture.make_pods_ready().await;
                let raw = view.fetch("web").await.unwrap().raw().unwrap();
                let observed = raw["status"]["observedGeneration"] == raw["metadata"]["generation"];
                (observed && raw["status"][field] == count).then_some(())
            })
            .await;
        };
        status("availableReplicas", 3).await;
        let fewer = Patch::merge(json!({"spec": {"replicas": 1}}));
        view.patch("web", &fewer).await.unwrap();
        has_pods(&fixture, 1).await;
        status("replicas", 1).await;
        until("events", async || {
            let created = fixture.events("web", "SuccessfulCreate").await;
            let deleted = fixture.events("web", "SuccessfulDelete").await;
            (created.len() == 3 && deleted.len() == 2).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn orphans_are_adopted_and_non_matching_pods_released() {
    for kind in kinds() {
        let fixture = Fixture::with_node().await;
        let orphan = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "orphan", "namespace": "default", "labels": {"app": "web"}},
            "spec": {"containers": [crate::fixture::container()]},
        });
        let orphan = fixture.cluster.create(&orphan, None).await.unwrap();
        create(&fixture, &kind, 1).await;
        let pods = fixture.cluster.pods().in_namespace("default").unwrap();
        until("adoption", async || {
            let pod = pods.fetch("orphan").await.unwrap();
            pod.meta().controller().map(|_| ())
        })
        .await;
        assert_eq!(fixture.pods().await.len(), 1);
        let other = Patch::merge(json!({"metadata": {"labels": {"app": "other"}}}));
        pods.patch("orphan", &other).await.unwrap();
        has_pods(&fixture, 2).await;
        let pod = pods.fetch("orphan").await.unwrap();
        assert_eq!((pod.uid(), pod.meta().controller()), (orphan.uid(), None));
    }
}

#[tokio::test]
async fn deleting_a_set_deletes_or_orphans_its_pods() {
    for kind in kinds() {
        for (propagation, left) in [
            (Propagation::Background, 0),
            (Propagation::Foreground, 0),
            (Propagation::Orphan, 2),
        ] {
            let fixture = Fixture::with_node().await;
            create(&fixture, &kind, 2).await;
            has_pods(&fixture, 2).await;
            let options = DeleteOptions {
                propagation: Some(propagation),
                ..DeleteOptions::default()
            };
            let view = view(&fixture, kind.0).await;
            view.delete("web", &options).await.unwrap();
            until("the deletion of the set", async || {
                fixture.end_pods(|_| None).await;
                let gone = view.find("web").await.unwrap().is_none();
                (gone && fixture.pods().await.len() == left).then_some(())
            })
            .await;
            let pods = fixture.pods().await;
            assert!(
                pods.iter()
                    .all(|pod| pod.meta().owner_references.is_empty())
            );
        }
    }
}

#[tokio::test]
async fn after_a_restart_the_number_of_pods_is_exact() {
    let mut fixture = Fixture::with_node().await;
    let [kind, _] = kinds();
    create(&fixture, &kind, 40).await;
    until("some pods", async || {
        (fixture.pods().await.len() > 5).then_some(())
    })
    .await;
    fixture.stop_controllers().await;
    fixture.start_controllers().await;
    has_pods(&fixture, 40).await;
    let view = view(&fixture, kind.0).await;
    until("status", async || {
        // The scheduler may bind a pod late.
        fixture.make_pods_ready().await;
        let raw = view.fetch("web").await.unwrap().raw().unwrap();
        (raw["status"]["readyReplicas"] == 40).then_some(())
    })
    .await;
    // Requests that were in flight at the stop may have created excess pods after the new
    // controllers listed the pods; these are deleted.
    has_pods(&fixture, 40).await;
}

/// A condition and an event report that the server rejects the pods.
#[tokio::test]
async fn rejected_pods_are_a_replica_failure() {
    let fixture = Fixture::with_node().await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"priorityClassName": "absent", "containers": [crate::fixture::container()]},
        }},
    });
    fixture.cluster.create(&set, None).await.unwrap();
    let view = view(&fixture, "ReplicaSet").await;
    let condition = until("the condition", async || {
        let raw = view.fetch("web").await.unwrap().raw().unwrap();
        let condition = raw["status"]["conditions"][0].clone();
        (condition["type"] == "ReplicaFailure").then_some(condition)
    })
    .await;
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("True"), &json!("FailedCreate"))
    );
    assert!(
        condition["message"].as_str().unwrap().contains("absent"),
        "{condition}"
    );
    until("the event", async || {
        let messages = fixture.events("web", "FailedCreate").await;
        messages
            .iter()
            .any(|text| text.starts_with("Error creating: "))
            .then_some(())
    })
    .await;
}
