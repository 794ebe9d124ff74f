//! Jobs and CronJobs.

use longshore_client::until;
use serde_json::json;

use crate::common::{HOUR, TIMEOUT, advance, seconds, spec, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_job_runs_at_three_o_clock() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    let mut pod = spec("true");
    pod["restartPolicy"] = "Never".into();
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}});
    cluster.create(&cron, Some("default")).await.unwrap();
    let jobs = cluster.jobs().in_namespace("default").unwrap();
    advance(&embedded, seconds(59)).await;
    assert!(jobs.list().await.unwrap().items.is_empty());
    advance(&embedded, seconds(1)).await;
    // The name contains the scheduled time in minutes.
    for (name, day) in [("nightly-29453940", "01"), ("nightly-29455380", "02")] {
        let job = jobs.wait(name, |_| true, TIMEOUT).await.unwrap();
        let created = &job.raw().unwrap()["metadata"]["creationTimestamp"];
        assert_eq!(created, &json!(format!("2026-01-{day}T03:00:00Z")));
        advance(&embedded, 24 * HOUR).await;
    }
    embedded.stop().await;
}

/// A jump starts one Job for the last missed time; steps start one Job each.
#[tokio::test(flavor = "multi_thread")]
async fn an_advance_is_one_jump() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    let mut pod = spec("true");
    pod["restartPolicy"] = "Never".into();
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}});
    cluster.create(&cron, Some("default")).await.unwrap();
    let jobs = cluster.jobs().in_namespace("default").unwrap();
    advance(&embedded, seconds(300)).await;
    jobs.wait("often-29453944", |_| true, TIMEOUT)
        .await
        .unwrap();
    assert_eq!(jobs.list().await.unwrap().items.len(), 1);
    for minute in 29_453_945..=29_453_947 {
        advance(&embedded, seconds(60)).await;
        let name = format!("often-{minute}");
        jobs.wait(&name, |_| true, TIMEOUT).await.unwrap();
    }
    assert_eq!(jobs.list().await.unwrap().items.len(), 4);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_job_is_deleted_after_its_ttl() {
    let embedded = start(true).await;
    let jobs = embedded.cluster().jobs().in_namespace("default").unwrap();
    let mut pod = spec("true");
    pod["restartPolicy"] = "Never".into();
    let job = json!({"metadata": {"name": "short"}, "spec": {
        "ttlSecondsAfterFinished": 3600, "template": {"spec": pod}}});
    jobs.create(&job).await.unwrap();
    let done = jobs.wait("short", until::finished, TIMEOUT).await.unwrap();
    let status = &done.raw().unwrap()["status"];
    assert_eq!(status["completionTime"], "2026-01-01T02:59:00Z");
    advance(&embedded, seconds(3599)).await;
    assert!(jobs.find("short").await.unwrap().is_some());
    advance(&embedded, seconds(1)).await;
    jobs.wait_gone("short", TIMEOUT).await.unwrap();
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_pod_of_a_job_is_replaced_after_its_backoff() {
    let embedded = start(true).await;
    let jobs = embedded.cluster().jobs().in_namespace("default").unwrap();
    let mut pod = spec("exit 1");
    pod["restartPolicy"] = "Never".into();
    let job = json!({"metadata": {"name": "failing"}, "spec": {
        "backoffLimit": 2, "template": {"spec": pod}}});
    jobs.create(&job).await.unwrap();
    for (failed, backoff) in [(1, 10), (2, 20)] {
        let has_failed = move |item: &longshore_client::Item<_>| {
            let count: Option<u32> = item.field(&["status", "failed"]).unwrap();
            count == Some(failed)
        };
        jobs.wait("failing", has_failed, TIMEOUT).await.unwrap();
        advance(&embedded, seconds(backoff)).await;
    }
    let failed = until::condition("Failed");
    let job = jobs.wait("failing", failed, TIMEOUT).await.unwrap();
    let raw = job.raw().unwrap();
    let reasons = raw["status"]["conditions"].as_array().unwrap().iter();
    assert!(
        reasons
            .map(|one| &one["reason"])
            .any(|reason| reason == "BackoffLimitExceeded"),
        "{raw}"
    );
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_fails_at_its_deadline() {
    let embedded = start(true).await;
    let jobs = embedded.cluster().jobs().in_namespace("default").unwrap();
    let mut pod = spec("sleep 1000");
    pod["restartPolicy"] = "Never".into();
    let job = json!({"metadata": {"name": "slow"}, "spec": {
        "activeDeadlineSeconds": 7200, "template": {"spec": pod}}});
    jobs.create(&job).await.unwrap();
    let is_ready = |item: &longshore_client::Item<_>| {
        item.field::<u32>(&["status", "ready"]).unwrap() == Some(1)
    };
    jobs.wait("slow", is_ready, TIMEOUT).await.unwrap();
    advance(&embedded, 2 * HOUR).await;
    let failed = until::condition("Failed");
    let job = jobs.wait("slow", failed, TIMEOUT).await.unwrap();
    let raw = job.raw().unwrap();
    let conditions = raw["status"]["conditions"].as_array().unwrap();
    let failed = conditions
        .iter()
        .find(|one| one["type"] == "Failed")
        .unwrap();
    assert_eq!(failed["reason"], "DeadlineExceeded");
    assert_eq!(failed["lastTransitionTime"], "2026-01-01T04:59:00Z");
    embedded.stop().await;
}
