//! Whether a cluster has work: what a cluster on demand stays for when no
//! command uses it.

use std::time::{Duration, Instant};

use longshore_client::{Cluster, Error, FieldSelector};
use serde::Deserialize;

/// How often a cluster that stays for work looks whether it is done.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a deleted pod may take to go, and a Job without pods to get its next
/// pod or its last condition, before they count as work.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const SETTLE_INTERVAL: Duration = Duration::from_millis(5);

/// What a cluster still has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Nothing.
    None,
    /// A pod that is being deleted, or a Job or a schedule that has no pod just
    /// now.
    Pending,
    /// A pod that is not over.
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
    fn is_over(&self) -> bool {
        self.status.conditions.iter().any(|condition| {
            condition.status == "True" && matches!(condition.kind.as_str(), "Complete" | "Failed")
        })
    }
}

/// Whether the cluster has work. What is about to be over gets a moment to be so.
pub(super) async fn is_active(cluster: &Cluster) -> bool {
    let begin = Instant::now();
    loop {
        match look(cluster).await {
            Work::None => return false,
            Work::Active => return true,
            Work::Pending if begin.elapsed() > SETTLE_TIMEOUT => return true,
            Work::Pending => tokio::time::sleep(SETTLE_INTERVAL).await,
        }
    }
}

/// Waits until the cluster has no work.
pub(super) async fn done(cluster: &Cluster) {
    while look(cluster).await != Work::None {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// What there is to do now. What cannot be read counts as work: a cluster that
/// stays does less harm than one that ends with a run in it.
async fn look(cluster: &Cluster) -> Work {
    match try_look(cluster).await {
        Ok(work) => work,
        Err(error) => {
            tracing::warn!(%error, "cannot read the cluster's work");
            Work::Active
        }
    }
}

async fn try_look(cluster: &Cluster) -> Result<Work, Error> {
    let not_over: FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
        .parse()
        .map_err(Error::from)?;
    let pods = cluster.pods().fields(not_over).list().await?.items;
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
        if !facts.spec.suspend && !facts.is_over() {
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
    async fn pods_jobs_and_schedules_are_work_until_they_are_over() {
        let embedded = start_server().await.unwrap();
        let cluster = embedded.cluster();
        assert!(!is_active(&cluster).await);

        let mut pod = template();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"] = json!({"name": "a"});
        create(&cluster, pod).await;
        assert_eq!(look(&cluster).await, Work::Active);
        set_status(&cluster, "pod", json!({"phase": "Failed"})).await;
        assert_eq!(look(&cluster).await, Work::None);

        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"},
            "spec": {"suspend": true, "template": template()},
        });
        create(&cluster, job).await;
        assert_eq!(look(&cluster).await, Work::None, "suspended");
        let go_on = longshore_client::Patch::merge(json!({"spec": {"suspend": false}}));
        let jobs = cluster.jobs().in_namespace("default").unwrap();
        jobs.patch("a", &go_on).await.unwrap();
        assert!(is_active(&cluster).await);
        let suspend = longshore_client::Patch::merge(json!({"spec": {"suspend": true}}));
        jobs.patch("a", &suspend).await.unwrap();

        let schedule = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}},
        });
        create(&cluster, schedule).await;
        assert_eq!(look(&cluster).await, Work::Pending);
        let schedules = cluster.cronjobs().in_namespace("default").unwrap();
        schedules.patch("a", &suspend).await.unwrap();
        done(&cluster).await;
        embedded.stop().await;
    }
}
