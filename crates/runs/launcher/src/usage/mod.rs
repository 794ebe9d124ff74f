//! The resource usage of a run's tasks: the current usage, and a short series that is stored with
//! the run.
//!
//! The bootstrap of each task measures its container and writes a record to the termination
//! message, which the cluster keeps in the pod's status when the task has ended. For a running
//! task, `metrics.k8s.io` reports the CPU and the memory, and the bootstrap's program prints the
//! record when a client executes it in the container.

mod metrics;
#[cfg(feature = "exec")]
mod recorded;
mod summary;
mod task;

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use jiff::Timestamp;
use longshore_client::{Cluster, Error};
use longshore_diagnosis::names::Task;
use longshore_model::facts::PodFacts;

use crate::run::Run;

pub use longshore_diagnosis::usage::{GpuRecord, Point, UsageRecord};
pub use summary::{RunUsageSummary, bytes, idle_gpus, live_line};
pub use task::{CurrentUsage, Requested, TaskUsage};

/// The queries about running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// No queries: only the records of ended tasks.
    Ended,
    /// The current usage.
    Current,
    /// The current usage and the series.
    Series,
}

/// The resource usage of a run's tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunUsage {
    /// The tasks that have started, by role and index, each in its last attempt.
    pub tasks: Vec<TaskUsage>,
    /// The tasks that could not be read, with the reasons.
    pub unseen: Vec<String>,
}

/// Queries the resource usage of a run's tasks. Errors about running tasks are listed in
/// [`RunUsage::unseen`].
///
/// # Errors
/// The run's pods cannot be listed.
pub fn of_run<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
    detail: Detail,
) -> BoxFuture<'a, Result<RunUsage, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(query(cluster, run, detail))
}

async fn query(cluster: &Cluster, run: &Run, detail: Detail) -> Result<RunUsage, Error> {
    let pods = run.list_pods(cluster).await?;
    let pods = pods.iter().map(|pod| pod.typed::<PodFacts>());
    let mut usage = RunUsage {
        tasks: last_attempts(&pods.collect::<Result<Vec<_>, _>>()?),
        unseen: Vec::new(),
    };
    if detail == Detail::Ended || !usage.tasks.iter().any(|task| task.is_running) {
        return Ok(usage);
    }
    let problem = metrics::read(cluster, run, &mut usage.tasks).await.err();
    #[cfg(feature = "exec")]
    recorded::read(cluster, run, detail, &mut usage).await;
    // The records of the tasks contain the same values.
    let is_unknown = |task: &TaskUsage| task.current.is_none() && task.record.is_none();
    let mut running = usage.tasks.iter().filter(|task| task.is_running);
    if running.any(is_unknown) {
        usage.unseen.extend(problem);
    }
    Ok(usage)
}

/// The last attempt of each task that has started.
fn last_attempts(pods: &[PodFacts]) -> Vec<TaskUsage> {
    type Attempt = (Option<Timestamp>, TaskUsage);
    let mut tasks: BTreeMap<Task, Attempt> = BTreeMap::new();
    for pod in pods {
        let Some(usage) = TaskUsage::of(pod) else {
            continue;
        };
        let created = pod.metadata.creation_timestamp;
        let known = tasks.get(&usage.task);
        // An attempt without a record is less useful than an earlier attempt with a record.
        let is_newer = known.is_none_or(|(known, old)| {
            let counts = usage.is_running || usage.record.is_some() || old.record.is_none();
            created >= *known && counts
        });
        if is_newer {
            tasks.insert(usage.task.clone(), (created, usage));
        }
    }
    tasks.into_values().map(|(_, usage)| usage).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(name: &str, second: u32, state: serde_json::Value) -> PodFacts {
        serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
                "labels": {"longshore.dev/role": "worker"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "0"},
            },
            "spec": {"containers": [{
                "name": "main",
                "command": ["longshore", "bootstrap", "exec", "--", "true"],
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
            }]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]},
        }))
        .unwrap()
    }

    fn ended(record: &UsageRecord) -> serde_json::Value {
        json!({"terminated": {"exitCode": 0, "message": record.line().unwrap()}})
    }

    #[test]
    fn the_last_attempt_of_a_task_counts() {
        let record = |seconds| UsageRecord {
            seconds,
            ..UsageRecord::default()
        };
        let pods = [
            pod("a", 1, ended(&record(1.0))),
            pod("c", 3, json!({"waiting": {"reason": "ContainerCreating"}})),
            pod("b", 2, ended(&record(2.0))),
            pod("d", 4, json!({"terminated": {"exitCode": 1}})),
        ];
        let tasks = last_attempts(&pods);
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].pod, "b");
        assert_eq!(tasks[0].requested.cpu, Some(0.5));
        assert_eq!(tasks[0].record.as_ref().unwrap().seconds, 2.0);
        assert_eq!(tasks[0].to_json()["recorded"]["seconds"], 2.0);
        let running = [pods[0].clone(), pod("e", 5, json!({"running": {}}))];
        let tasks = last_attempts(&running);
        assert_eq!((tasks[0].pod.as_str(), tasks[0].is_running), ("e", true));
        assert_eq!(tasks[0].program.as_deref(), Some("longshore"));
        assert_eq!(tasks[0].cpu(), None);
    }
}
