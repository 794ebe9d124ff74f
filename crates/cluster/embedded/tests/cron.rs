//! A CronJob on a complete embedded cluster: its pods run, it continues after a restart,
//! and its Jobs are deleted with it.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use longshore_client::{Cluster, DeleteOptions, Item, Propagation, kinds::CronJob};
use longshore_embedded::{EmbeddedCluster, Options};
use serde_json::json;

async fn until<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "timed out waiting for: {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn ticks(cluster: &Cluster) -> Item<CronJob> {
    let crons = cluster.cronjobs().in_namespace("default").unwrap();
    crons.fetch("ticks").await.unwrap()
}

/// Creates the CronJob and waits until a Job of the CronJob has succeeded.
async fn first_tick(cluster: &Cluster) {
    let container = json!({"name": "main", "image": "any", "command": ["echo", "tick"]});
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    let job = json!({"spec": {"template": {"spec": pod}}});
    let cron = json!({
        "metadata": {"name": "ticks"},
        "spec": {"schedule": "@every 1s", "timeZone": "Asia/Tokyo", "jobTemplate": job},
    });
    let crons = cluster.cronjobs().in_namespace("default").unwrap();
    crons.create(&cron).await.unwrap();
    until("a success", async || {
        let raw = ticks(cluster).await.raw().unwrap();
        raw["status"]["lastSuccessfulTime"].as_str().map(drop)
    })
    .await;
    let job = ticks(cluster).await.jobs().await.unwrap().remove(0);
    let scheduled = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    let scheduled = job.meta().annotations.get(scheduled).unwrap();
    assert!(scheduled.ends_with("+09:00"), "{scheduled}");
    let pod = ticks(cluster).await.pods().await.unwrap().remove(0);
    assert_eq!(pod.raw().unwrap()["status"]["phase"], "Succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cron_job_continues_after_a_restart_and_is_deleted_with_its_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        ephemeral: false,
        data_dir: Some(dir.path().to_owned()),
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options.clone()).await.unwrap();
    first_tick(&embedded.cluster()).await;
    embedded.stop().await;

    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let last_schedule = async || {
        let time: jiff::Timestamp = ticks(&cluster)
            .await
            .status_field(&["lastScheduleTime"])
            .unwrap();
        time
    };
    let before = last_schedule().await;
    until("more times", async || {
        (last_schedule().await > before).then_some(())
    })
    .await;
    let background = DeleteOptions {
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    ticks(&cluster).await.delete(&background).await.unwrap();
    until("the deletion of all Jobs and pods", async || {
        let jobs = cluster.jobs().list().await.unwrap().items;
        let pods = cluster.pods().list().await.unwrap().items;
        (jobs.is_empty() && pods.is_empty()).then_some(())
    })
    .await;
    embedded.stop().await;
}
