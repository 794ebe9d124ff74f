//! CronJobs.

use jiff::{SignedDuration, Timestamp};
use longshore_conformance::PatchType;
use longshore_model::time;
use serde_json::json;

use crate::{
    objects::{controller, job, list, text},
    plane::Plane,
};

#[tokio::test]
async fn a_cron_job_starts_the_job_of_a_missed_time() {
    let plane = Plane::with_nodes(1).await;
    let job = job(plane.namespace(), "tick", "succeed", &json!({}));
    let crons = plane.path("batch/v1", "cronjobs");
    let cron = json!({
        "metadata": {"name": "tick"},
        "spec": {
            "schedule": "*/5 * * * *", "suspend": true,
            "jobTemplate": {"spec": job["spec"]},
        },
    });
    let cron = plane.create(&crons, &cron).await;
    let path = format!("{crons}/tick");
    // The last schedule was some time ago.
    let last = Timestamp::now() - SignedDuration::from_mins(30);
    let status = json!({"status": {"lastScheduleTime": time::seconds(last)}});
    let at = format!("{path}/status");
    plane.patch(&at, PatchType::Merge, &status).await.ok();
    let jobs = plane.path("batch/v1", "jobs");
    assert_eq!(plane.list(&jobs).await.0.len(), 0);
    plane
        .merge(&path, &json!({"spec": {"suspend": false}}))
        .await;
    let started = plane.until_items(&jobs, |jobs| !jobs.is_empty()).await;
    assert_eq!(started.len(), 1);
    assert_eq!(controller(&started[0]), text(&cron, "/metadata/uid"));
    let when = "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp";
    assert!(!text(&started[0], when).is_empty());
    plane
        .until(&path, |cron| {
            let last = time::parse(text(cron, "/status/lastScheduleTime"));
            let is_recent = |at: Timestamp| at > Timestamp::now() - SignedDuration::from_mins(10);
            last.is_some_and(is_recent)
                && list(cron, "/status/active").is_empty()
                && !text(cron, "/status/lastSuccessfulTime").is_empty()
        })
        .await;
}
