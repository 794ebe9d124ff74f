//! Checks if a cluster has work. A cluster on demand keeps running while it does, even if no
//! command uses it.

use std::time::{Duration, Instant};

use longshore_client::{Cluster, Error, FieldSelector};
use serde::Deserialize;

/// Interval at which a cluster checks if its work is done.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time for a pod to be deleted, and for a Job without pods to get its next pod or its final
/// condition, before they count as work.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of the checks during [`SETTLE_TIMEOUT`].
const SETTLE_INTERVAL: Duration = Duration::from_millis(5);

/// The work of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// No work.
    None,
    /// A pod that is being deleted, or a Job or a CronJob without a pod at the
    /// moment.
    Pending,
    /// A pod that has not finished.
    Active,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Facts {
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    suspend: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Facts {
    fn is_finished(&self) -> bool {
        self.status.conditions.iter().any(|condition| {
            condition.status == "True" && matches!(condition.kind.as_str(), "Complete" | "Failed")
        })
    }
}

/// Returns true if the cluster has work. Waits a moment for work that is about to finish.
pub(super) async fn is_active(cluster: &Cluster) -> bool {
    let begin = Instant::now();
    loop {
        match current_work(cluster).await {
            Work::None => return false,
            Work::Active => return true,
            Work::Pending if begin.elapsed() > SETTLE_TIMEOUT => return true,
            Work::Pending => tokio::time::sleep(SETTLE_INTERVAL).await,
        }
    }
}

/// Waits until the cluster has no work.
pub(super) async fn done(cluster: &Cluster) {
    while current_work(cluster).await != Work::None {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the current work. Errors count as work, because a cluster that runs too long does less
/// harm than a cluster that stops during a run.
async fn current_work(cluster: &Cluster) -> Work {
    match read_work(cluster).await {
        Ok(work) => work,
        Err(error) => {
            tracing::warn!(%error, "cannot read the cluster's work");
            Work::Active
        }
    }
}

async fn read_work(cluster: &Cluster) -> Result<Work, Error> {
    let unfinished: FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
        .parse()
        .map_err(Error::from)?;
    let pods = cluster.pods().fields(unfinished).list().await?.items;
    if pods
        .iter()
        .any(|pod| pod.meta().deletion_timestamp.is_none())
    {
        return Ok(Work::Active);
    }
    if !pods.is_empty() {
        return Ok(Work::Pending);
    }
    for job in cluster.jobs().list().await?.items {
        let facts: Facts = job.typed()?;
        if !facts.spec.suspend && !facts.is_finished() {
            return Ok(Work::Pending);
        }
    }
    for schedule in cluster.cronjobs().list().await?.items {
        let facts: Facts = schedule.typed()?;
        if !facts.spec.suspend {
            return Ok(Work::Pending);
        }
    }
    Ok(Work::None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::start_server;

    async fn create(cluster: &Cluster, object: Value) {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        let view = cluster.kind(&kind).await.unwrap();
        let view = view.in_namespace("default").unwrap();
        view.create(&object).await.unwrap();
    }

    fn template() -> Value {
        json!({"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "any", "command": ["true"]}],
        }})
    }

    async fn set_status(cluster: &Cluster, kind: &str, status: Value) {
        let view = cluster.kind(kind).await.unwrap();
        let view = view.in_namespace("default").unwrap();
        let patch = longshore_client::Patch::merge(json!({"status": status}));
        view.patch_status("a", &patch).await.unwrap();
    }

    #[tokio::test]
    async fn pods_jobs_and_cron_jobs_are_work_until_they_finish() {
        let embedded = start_server().await.unwrap();
        let cluster = embedded.cluster();
        assert!(!is_active(&cluster).await);

        let mut pod = template();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"] = json!({"name": "a"});
        create(&cluster, pod).await;
        assert_eq!(current_work(&cluster).await, Work::Active);
        set_status(&cluster, "pod", json!({"phase": "Failed"})).await;
        assert_eq!(current_work(&cluster).await, Work::None);

        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
            "spec": {"suspend": true, "template": template()},
        });
        create(&cluster, job).await;
        assert_eq!(current_work(&cluster).await, Work::None, "suspended");
        let resume = longshore_client::Patch::merge(json!({"spec": {"suspend": false}}));
        let jobs = cluster.jobs().in_namespace("default").unwrap();
        jobs.patch("a", &resume).await.unwrap();
        assert!(is_active(&cluster).await);
        let suspend = longshore_client::Patch::merge(json!({"spec": {"suspend": true}}));
        jobs.patch("a", &suspend).await.unwrap();

        let schedule = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}},
        });
        create(&cluster, schedule).await;
        assert_eq!(current_work(&cluster).await, Work::Pending);
        let schedules = cluster.cronjobs().in_namespace("default").unwrap();
        schedules.patch("a", &suspend).await.unwrap();
        done(&cluster).await;
        embedded.stop().await;
    }
}
