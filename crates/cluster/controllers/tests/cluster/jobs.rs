//! The Job controller.

use std::collections::BTreeSet;

use longshore_client::Patch;
use serde_json::{Value, json};

use crate::fixture::{Fixture, container, until};

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

#[tokio::test]
async fn an_indexed_job_completes() {
    let fixture = Fixture::with_node().await;
    fixture
        .job(json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2}))
        .await;
    let status = fixture.end_pods_until("Complete", |_| Some(0)).await;
    assert_eq!(status["completedIndexes"], "0-2");
    assert_eq!(status["succeeded"], 3);
    assert_eq!(status["terminating"], 0);
    assert_eq!(status["active"].as_i64().unwrap_or(0), 0);
    assert!(status["startTime"].is_string() && status["completionTime"].is_string());
    assert!(status["uncountedTerminatedPods"]["failed"].is_null());
    let pods = fixture.pods().await;
    let mut hosts = BTreeSet::new();
    for pod in &pods {
        let raw = pod.raw().unwrap();
        let index = raw["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            pod.name().starts_with(&format!("train-{index}-")),
            "{}",
            pod.name()
        );
        assert_eq!(
            raw["metadata"]["labels"]["batch.kubernetes.io/job-name"],
            "train"
        );
        assert_eq!(
            raw["metadata"]["labels"]["controller-uid"],
            fixture.train().await.uid()
        );
        assert_eq!(raw["spec"]["hostname"], format!("train-{index}"));
        assert_eq!(raw["spec"]["subdomain"], "train");
        assert!(!pod.meta().finalizers.iter().any(|name| name == FINALIZER));
        let owner = pod.meta().controller().unwrap();
        assert_eq!(owner.block_owner_deletion, Some(true));
        hosts.insert(index);
    }
    assert_eq!((pods.len(), hosts.len()), (3, 3));
    until("event", async || {
        let messages = fixture.events("train", "Completed").await;
        (messages == ["Job completed"]).then_some(())
    })
    .await;
    assert_eq!(fixture.events("train", "SuccessfulCreate").await.len(), 3);
}

#[tokio::test]
async fn each_of_many_pods_is_created_and_counted_once() {
    let mut fixture = Fixture::with_node().await;
    fixture
        .job(json!({"completions": 60, "parallelism": 25}))
        .await;
    until("first successes", async || {
        fixture.end_pods(|_| Some(0)).await;
        (fixture.status().await["succeeded"].as_i64().unwrap_or(0) > 5).then_some(())
    })
    .await;
    // Pods end while the controllers are stopped; the next start counts them.
    fixture.stop_controllers().await;
    fixture.end_pods(|_| Some(0)).await;
    fixture.start_controllers().await;
    let status = fixture.end_pods_until("Complete", |_| Some(0)).await;
    assert_eq!(status["succeeded"], 60);
    assert!(status["failed"].is_null());
    assert_eq!(fixture.pods().await.len(), 60);
}

#[tokio::test]
async fn a_job_fails_past_its_backoff_limit() {
    let fixture = Fixture::with_node().await;
    fixture.job(json!({"backoffLimit": 1})).await;
    let status = fixture.end_pods_until("Failed", |_| Some(1)).await;
    assert_eq!(status["failed"], 2);
    assert!(status["succeeded"].is_null() && status["completionTime"].is_null());
    let conditions = status["conditions"].as_array().unwrap();
    let reasons: Vec<_> = conditions
        .iter()
        .map(|c| (&c["type"], &c["reason"]))
        .collect();
    assert_eq!(
        reasons,
        [
            (&json!("FailureTarget"), &json!("BackoffLimitExceeded")),
            (&json!("Failed"), &json!("BackoffLimitExceeded")),
        ]
    );
    assert_eq!(fixture.pods().await.len(), 2);
    until("event", async || {
        let messages = fixture.events("train", "BackoffLimitExceeded").await;
        (messages == ["Job has reached the specified backoff limit"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_exit_code_ends_the_job_and_its_other_pods() {
    let fixture = Fixture::with_node().await;
    fixture
        .job(json!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3,
            "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
            ]}
        }))
        .await;
    let is_first = |pod: &longshore_client::Item<longshore_client::kinds::Pod>| {
        if pod.meta().deletion_timestamp.is_some() {
            return Some(143);
        }
        pod.name().starts_with("train-0-").then_some(42)
    };
    let status = fixture.end_pods_until("Failed", is_first).await;
    assert_eq!(status["failed"], 3);
    assert_eq!(status["terminating"], 0);
    let reason = &status["conditions"].as_array().unwrap().last().unwrap()["reason"];
    assert_eq!(reason, "PodFailurePolicy");
}

#[tokio::test]
async fn suspending_is_not_a_failure_and_can_be_resumed() {
    let fixture = Fixture::with_node().await;
    fixture
        .job(json!({"completions": 2, "parallelism": 2}))
        .await;
    until("pods", async || {
        (fixture.pods().await.len() == 2).then_some(())
    })
    .await;
    let suspend = |on: bool| Patch::merge(json!({"spec": {"suspend": on}}));
    fixture.train().await.patch(&suspend(true)).await.unwrap();
    until("no pods", async || {
        fixture.end_pods(|_| None).await;
        let status = fixture.status().await;
        let none = fixture.pods().await.is_empty() && status["active"].as_i64().unwrap_or(0) == 0;
        (none && crate::fixture::has_condition(&status, "Suspended")).then_some(())
    })
    .await;
    assert!(fixture.status().await["failed"].is_null());
    fixture.train().await.patch(&suspend(false)).await.unwrap();
    let status = fixture.end_pods_until("Complete", |_| Some(0)).await;
    assert_eq!(status["succeeded"], 2);
    assert!(status["failed"].is_null());
}

#[tokio::test]
async fn a_finished_job_is_deleted_with_its_pods_after_its_ttl() {
    let fixture = Fixture::with_node().await;
    fixture.job(json!({"ttlSecondsAfterFinished": 0})).await;
    until("nothing left", async || {
        fixture.end_pods(|_| Some(0)).await;
        let jobs = fixture.cluster.jobs().list().await.unwrap().items;
        (jobs.is_empty() && fixture.pods().await.is_empty()).then_some(())
    })
    .await;
}

/// Deadlines and TTLs beyond the range of timestamps do not stop their own Job or others, even
/// after a restart.
#[tokio::test]
async fn a_job_with_an_endless_deadline_does_not_affect_other_jobs() {
    let mut fixture = Fixture::with_node().await;
    let jobs = fixture.cluster.jobs().in_namespace("default").unwrap();
    for (name, seconds) in [("most", i64::MAX), ("many", i64::MAX / 1000)] {
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"activeDeadlineSeconds": seconds, "ttlSecondsAfterFinished": i32::MAX,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}},
        });
        jobs.create(&job).await.unwrap();
    }
    let active = async |name: &str| {
        until("an active pod", async || {
            let job = jobs.find(name).await.unwrap().unwrap().raw().unwrap();
            (job["status"]["active"] == 1).then_some(())
        })
        .await;
    };
    active("most").await;
    active("many").await;
    fixture.stop_controllers().await;
    fixture.start_controllers().await;
    fixture
        .job(json!({"completions": 2, "parallelism": 2}))
        .await;
    let status = fixture.end_pods_until("Complete", |_| Some(0)).await;
    assert_eq!(status["succeeded"], 2);
}

/// A Job with a selector from the user.
fn selecting_job() -> Value {
    let labels = json!({"app": "mine"});
    json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"manualSelector": true, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"restartPolicy": "Never", "containers": [container()]}}}})
}

/// The pod with the name.
async fn pod_named(fixture: &Fixture, name: &str) -> Value {
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    pods.fetch(name).await.unwrap().raw().unwrap()
}

#[tokio::test]
async fn a_job_adopts_pods_that_it_selects_and_releases_others() {
    let fixture = Fixture::with_node().await;
    let pods = fixture.cluster.pods().in_namespace("default").unwrap();
    let pod = json!({"metadata": {"name": "early", "labels": {"app": "mine"}},
        "spec": {"restartPolicy": "Never", "containers": [container()]}});
    pods.create(&pod).await.unwrap();
    fixture
        .cluster
        .create(&selecting_job(), None)
        .await
        .unwrap();
    let adopted = until("the adoption", async || {
        let pod = pod_named(&fixture, "early").await;
        (!pod["metadata"]["ownerReferences"].is_null()).then_some(pod)
    })
    .await;
    let owner = &adopted["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("Job"), &json!(true))
    );
    let finalizers = json!(["batch.kubernetes.io/job-tracking"]);
    assert_eq!(adopted["metadata"]["finalizers"], finalizers);
    until("the count", async || {
        (fixture.status().await["active"] == 1).then_some(())
    })
    .await;
    assert_eq!(fixture.pods().await.len(), 1);

    // A pod whose labels have changed is released and replaced.
    let other = Patch::merge(json!({"metadata": {"labels": {"app": "other"}}}));
    pods.patch("early", &other).await.unwrap();
    until("the replacement", async || {
        (fixture.pods().await.len() == 2).then_some(())
    })
    .await;
    let released = pod_named(&fixture, "early").await;
    assert!(
        released["metadata"]["ownerReferences"].is_null(),
        "{released}"
    );
    assert!(released["metadata"]["finalizers"].is_null(), "{released}");

    // The pod belongs to the Job again after its labels are restored. The Job then has one pod too
    // many, and the newest is deleted.
    let again = Patch::merge(json!({"metadata": {"labels": {"app": "mine"}}}));
    pods.patch("early", &again).await.unwrap();
    until("the second adoption", async || {
        let pod = pod_named(&fixture, "early").await;
        (!pod["metadata"]["ownerReferences"].is_null()).then_some(())
    })
    .await;
    until("one pod", async || {
        fixture.end_pods(|_| None).await;
        (fixture.pods().await.len() == 1).then_some(())
    })
    .await;
}
