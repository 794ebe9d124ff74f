//! The tasks of a run whose metrics are read, each in its last attempt.

use std::collections::BTreeMap;

use longshore_client::{Error, Item, kinds::Pod};
use longshore_diagnosis::{evidence::RunPod as _, names::Task};
use longshore_model::facts::PodFacts;

/// A task and its last pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricTask {
    pub(crate) task: Task,
    pub(crate) pod: String,
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
            container: pod.main_name().to_owned(),
            has_started: pod.has_started(),
            running: is_running.then(|| pod.metadata.uid.clone()),
        };
        tasks.insert(task, attempt);
    }
    tasks.into_values().collect()
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
