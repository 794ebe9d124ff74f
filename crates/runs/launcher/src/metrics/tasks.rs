//! The tasks of a run whose metrics are read, each in its last attempt.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::{Cluster, Error, Item, kinds::Pod};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    names::Task,
};
use longshore_model::facts::PodFacts;

use crate::{run::Run, task_logs};

/// A task and its last pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricTask {
    pub(crate) task: Task,
    pub(crate) pod: String,
    /// The UID of the pod, if it is known.
    pub(crate) uid: Option<String>,
    /// The container of the command.
    pub(crate) container: String,
    pub(crate) has_started: bool,
    /// The UID of the pod, if the task runs.
    pub(crate) running: Option<String>,
}

/// The last attempt of each task that has started, or of each task that has not.
pub(super) fn last_attempts(pods: &[Item<Pod>]) -> Result<Vec<MetricTask>, Error> {
    let pods = pods.iter().map(|pod| pod.typed::<PodFacts>());
    Ok(last(pods.collect::<Result<Vec<_>, _>>()?))
}

fn last(mut pods: Vec<PodFacts>) -> Vec<MetricTask> {
    // An attempt that has not started has written nothing.
    pods.sort_by_key(|pod| {
        let created = pod.metadata.creation_timestamp;
        (pod.has_started(), created, pod.finished_at())
    });
    let mut tasks = BTreeMap::new();
    for pod in pods {
        let Some(task) = pod.task() else { continue };
        let is_running = pod.has_started() && !pod.is_over();
        let attempt = MetricTask {
            task: task.clone(),
            pod: pod.metadata.name.clone(),
            uid: Some(pod.metadata.uid.clone()),
            container: pod.main_name().to_owned(),
            has_started: pod.has_started(),
            running: is_running.then(|| pod.metadata.uid.clone()),
        };
        tasks.insert(task, attempt);
    }
    tasks.into_values().collect()
}

/// The last attempt of each task of an ended run whose pod was deleted, if the cluster keeps its
/// log. `tasks` have pods.
pub(super) async fn deleted(
    cluster: &Cluster,
    run: &Run,
    jobs: &[JobEvidence],
    tasks: &[MetricTask],
) -> Result<Vec<MetricTask>, Error> {
    // While the run is active, each of its tasks has a pod, or gets one soon.
    if !jobs.iter().all(task_logs::has_ended) {
        return Ok(Vec::new());
    }
    let started = tasks.iter().filter(|task| task.has_started);
    let started: BTreeSet<&Task> = started.map(|task| &task.task).collect();
    let mut deleted = BTreeMap::new();
    for log in task_logs::deleted(cluster, run, jobs).await? {
        if started.contains(&log.task) || !log.is_main {
            continue;
        }
        let attempt = MetricTask {
            task: log.task.clone(),
            pod: log.pod,
            uid: Some(log.uid),
            container: log.container,
            has_started: true,
            running: None,
        };
        deleted.insert(log.task, attempt);
    }
    Ok(deleted.into_values().collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(name: &str, second: u32, state: serde_json::Value) -> PodFacts {
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "uid": name,
                "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
                "labels": {"longshore.dev/role": "worker"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "1"},
            },
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]},
        }))
        .unwrap()
    }

    #[test]
    fn the_last_attempt_that_has_started_counts() {
        let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
        let pods = vec![
            pod("c", 3, waiting.clone()),
            pod("b", 2, json!({"running": {}})),
            pod("a", 1, json!({"terminated": {"exitCode": 1}})),
        ];
        let found = last(pods);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].task.to_string(), "worker/1");
        assert_eq!(
            (&*found[0].pod, found[0].running.as_deref()),
            ("b", Some("b"))
        );
        let found = last(vec![pod("c", 3, waiting)]);
        assert_eq!((found[0].has_started, &found[0].running), (false, &None));
    }
}
