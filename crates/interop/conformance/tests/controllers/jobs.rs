//! Jobs.

use serde_json::{Value, json};

use crate::{
    kubelet::BEHAVIOR,
    objects::{condition, has_reason, holds, job, list, number, text},
    plane::Plane,
};

/// Creates a Job `work`; returns its path.
async fn create(plane: &Plane, behavior: &str, spec: Value) -> String {
    let jobs = plane.path("batch/v1", "jobs");
    let job = job(plane.namespace(), "work", behavior, &spec);
    plane.create(&jobs, &job).await;
    format!("{jobs}/work")
}

#[tokio::test]
async fn a_job_completes_after_its_completions() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({"completions": 3, "parallelism": 2});
    let path = create(&plane, "succeed", spec).await;
    let job = plane.until(&path, |job| holds(job, "Complete")).await;
    assert_eq!(number(&job, "/status/succeeded"), 3);
    assert!(holds(&job, "SuccessCriteriaMet"));
    assert!(!text(&job, "/status/completionTime").is_empty());
    let pods = plane.list(&plane.pods_of("work")).await.0;
    assert_eq!(pods.len(), 3);
    plane
        .until_items(&plane.pods_of("work"), |pods| {
            pods.iter()
                .all(|pod| list(pod, "/metadata/finalizers").is_empty())
        })
        .await;
}

#[tokio::test]
async fn an_indexed_job_has_a_pod_for_each_index() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    let path = create(&plane, "succeed", spec).await;
    let job = plane.until(&path, |job| holds(job, "Complete")).await;
    assert_eq!(text(&job, "/status/completedIndexes"), "0-2");
    let pods = plane.list(&plane.pods_of("work")).await.0;
    let index = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    let mut indexes: Vec<&str> = pods.iter().map(|pod| text(pod, index)).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1", "2"]);
}

#[tokio::test]
async fn a_job_fails_after_its_backoff_limit() {
    let plane = Plane::with_nodes(1).await;
    let path = create(&plane, "fail", json!({"backoffLimit": 0})).await;
    let job = plane.until(&path, |job| holds(job, "Failed")).await;
    assert!(has_reason(&job, "Failed", "BackoffLimitExceeded"));
    assert!(has_reason(&job, "FailureTarget", "BackoffLimitExceeded"));
    assert_eq!(number(&job, "/status/failed"), 1);
    let message = &condition(&job, "Failed").unwrap()["message"];
    assert_eq!(message, "Job has reached the specified backoff limit");
}

#[tokio::test]
async fn a_pod_failure_policy_fails_the_job() {
    let plane = Plane::with_nodes(1).await;
    let codes = json!({"operator": "In", "values": [42]});
    let rules = json!([{"action": "FailJob", "onExitCodes": codes}]);
    let spec = json!({"backoffLimit": 5, "podFailurePolicy": {"rules": rules}});
    let path = create(&plane, "fail-42", spec).await;
    let job = plane.until(&path, |job| holds(job, "Failed")).await;
    assert!(has_reason(&job, "Failed", "PodFailurePolicy"));
    let message = text(condition(&job, "Failed").unwrap(), "/message");
    assert!(
        message.contains("exit code 42 matching FailJob rule at index 0"),
        "{message}"
    );
}

#[tokio::test]
async fn failed_indexes_fail_the_job_at_its_end() {
    let plane = Plane::with_nodes(1).await;
    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed",
        "backoffLimitPerIndex": 0,
    });
    let path = create(&plane, "unready", spec).await;
    let pods = plane
        .until_items(&plane.pods_of("work"), |pods| pods.len() == 2)
        .await;
    let index = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    for pod in &pods {
        let behavior = if text(pod, index) == "1" {
            "fail"
        } else {
            "succeed"
        };
        let pod = format!(
            "{}/{}",
            plane.path("v1", "pods"),
            text(pod, "/metadata/name")
        );
        let patch = json!({"metadata": {"annotations": {BEHAVIOR: behavior}}});
        plane.merge(&pod, &patch).await;
    }
    let job = plane.until(&path, |job| holds(job, "Failed")).await;
    assert!(has_reason(&job, "Failed", "FailedIndexes"));
    assert_eq!(text(&job, "/status/failedIndexes"), "1");
    assert_eq!(text(&job, "/status/completedIndexes"), "0");
}

#[tokio::test]
async fn a_suspended_job_has_no_pods() {
    let plane = Plane::with_nodes(1).await;
    let path = create(&plane, "ready", json!({"suspend": true})).await;
    plane.until(&path, |job| holds(job, "Suspended")).await;
    let pods = plane.pods_of("work");
    assert_eq!(plane.list(&pods).await.0.len(), 0);
    plane
        .merge(&path, &json!({"spec": {"suspend": false}}))
        .await;
    plane
        .until(&path, |job| number(job, "/status/ready") == 1)
        .await;
    plane
        .merge(&path, &json!({"spec": {"suspend": true}}))
        .await;
    plane.until_items(&pods, <[Value]>::is_empty).await;
    let job = plane.until(&path, |job| holds(job, "Suspended")).await;
    assert!(job["status"]["startTime"].is_null());
}

#[tokio::test]
async fn a_finished_job_is_deleted_after_its_time_to_live() {
    let plane = Plane::with_nodes(1).await;
    let path = create(&plane, "succeed", json!({"ttlSecondsAfterFinished": 1})).await;
    plane.until_gone(&path).await;
    plane
        .until_items(&plane.pods_of("work"), <[Value]>::is_empty)
        .await;
}

#[tokio::test]
async fn a_job_exceeds_its_active_deadline() {
    let plane = Plane::with_nodes(1).await;
    let path = create(&plane, "ready", json!({"activeDeadlineSeconds": 1})).await;
    let job = plane.until(&path, |job| holds(job, "Failed")).await;
    assert!(has_reason(&job, "Failed", "DeadlineExceeded"));
    plane
        .until_items(&plane.pods_of("work"), <[Value]>::is_empty)
        .await;
}

#[tokio::test]
async fn a_success_policy_ends_the_job() {
    let plane = Plane::with_nodes(1).await;
    let rules = json!([{"succeededIndexes": "0"}]);
    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed",
        "successPolicy": {"rules": rules},
    });
    let path = create(&plane, "ready", spec).await;
    let pods = plane
        .until_items(&plane.pods_of("work"), |pods| {
            pods.len() == 2 && pods.iter().all(|pod| holds(pod, "Ready"))
        })
        .await;
    let index = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    let leader = pods.iter().find(|pod| text(pod, index) == "0").unwrap();
    let name = text(leader, "/metadata/name");
    let leader = format!("{}/{name}", plane.path("v1", "pods"));
    let patch = json!({"metadata": {"annotations": {BEHAVIOR: "succeed"}}});
    plane.merge(&leader, &patch).await;
    let job = plane.until(&path, |job| holds(job, "Complete")).await;
    assert!(has_reason(&job, "SuccessCriteriaMet", "SuccessPolicy"));
    assert_eq!(number(&job, "/status/succeeded"), 1);
}

#[tokio::test]
async fn a_job_replaces_a_failed_pod() {
    let plane = Plane::with_nodes(1).await;
    let path = create(&plane, "ready", json!({"backoffLimit": 3})).await;
    let pods = plane.pods_of("work");
    let first = plane
        .until_items(&pods, |pods| pods.iter().any(|pod| holds(pod, "Ready")))
        .await;
    let name = text(&first[0], "/metadata/name");
    let patch = json!({"metadata": {"annotations": {BEHAVIOR: "fail"}}});
    plane
        .merge(&format!("{}/{name}", plane.path("v1", "pods")), &patch)
        .await;
    plane
        .until(&path, |job| {
            number(job, "/status/failed") == 1
                && number(job, "/status/active") == 1
                && number(job, "/status/ready") == 1
        })
        .await;
}
