//! A pod as an attempt of a task, with the times of its stages. Pure.

use jiff::Timestamp;
use longshore_launcher::runs::TaskPod;
use longshore_model::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::TaskState;

/// A pod of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskAttempt {
    pub(crate) role: String,
    pub(crate) index: u32,
    pub(crate) pod: String,
    pub(crate) node: String,
    pub(crate) state: TaskState,
    pub(crate) exit_code: Option<i32>,
    /// The reason why a container does not run, or has ended.
    pub(crate) reason: Option<String>,
    pub(crate) created: Option<Timestamp>,
    /// The time when the pod was bound to a node.
    pub(crate) scheduled: Option<Timestamp>,
    /// The time when the command started.
    pub(crate) started: Option<Timestamp>,
    /// The time when the command ended.
    pub(crate) finished: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: ObjectMeta,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    reason: Option<String>,
    conditions: Option<Vec<Condition>>,
    init_container_statuses: Option<Vec<Container>>,
    container_statuses: Option<Vec<Container>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    state: Option<State>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Details>,
    running: Option<Details>,
    terminated: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    reason: Option<String>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// Reads a pod. `None` if it is not a task of a run.
pub(crate) fn attempt(pod: &Value) -> Option<TaskAttempt> {
    let task_pod = TaskPod::deserialize(pod).ok()?;
    let task = task_pod.task()?;
    let pod = Pod::deserialize(pod).ok()?;
    let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
    let node = spec.node_name.unwrap_or_default();
    let state = match (task_pod.is_over(), task_pod.has_started()) {
        (true, _) => match (task_pod.exit_code(), task_pod.phase()) {
            (Some(0), _) | (None, "Succeeded") => TaskState::Succeeded,
            _ => TaskState::Failed,
        },
        (false, true) => TaskState::Running,
        (false, false) if node.is_empty() => TaskState::Pending,
        (false, false) => TaskState::Pulling,
    };
    let conditions = status.conditions.unwrap_or_default();
    let bound = conditions.iter();
    let mut bound = bound.filter(|known| known.kind == "PodScheduled");
    let bound = bound.next();
    let scheduled = bound.filter(|known| known.status == "True");
    let unscheduled = bound.filter(|known| known.status == "False");
    let containers = status.container_statuses.unwrap_or_default();
    let main = containers
        .iter()
        .find(|container| container.name == task_pod.main_container());
    let main = main.and_then(|container| container.state.as_ref());
    let ran = main.and_then(|state| state.running.as_ref().or(state.terminated.as_ref()));
    let ended = main.and_then(|state| state.terminated.as_ref());
    let init = status.init_container_statuses.unwrap_or_default();
    let init = init.iter().filter_map(|container| container.state.as_ref());
    let mut waits: Vec<&State> = init.collect();
    waits.extend(main);
    let reason = ended
        .and_then(|ended| ended.reason.clone())
        .or(status.reason)
        .or_else(|| {
            let mut waiting = waits.iter().filter_map(|state| state.waiting.as_ref());
            waiting.find_map(|waiting| waiting.reason.clone())
        })
        .or_else(|| unscheduled.and_then(|known| known.reason.clone()));
    Some(TaskAttempt {
        role: task.role,
        index: task.index,
        pod: task_pod.name().to_owned(),
        node,
        state,
        exit_code: task_pod.exit_code(),
        reason: reason.filter(|reason| !reason.is_empty()),
        created: pod.metadata.creation_timestamp,
        scheduled: scheduled.and_then(|known| known.last_transition_time),
        started: ran.and_then(|ran| ran.started_at),
        finished: ended.and_then(|ended| ended.finished_at),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_times_of_a_pod() {
        let pod = json!({
            "metadata": {
                "name": "a",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"longshore.dev/role": "worker"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "3"},
            },
            "spec": {"nodeName": "node-1"},
            "status": {
                "phase": "Failed",
                "conditions": [
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
                ],
                "containerStatuses": [{"name": "main", "state": {"terminated": {
                    "exitCode": 137, "reason": "OOMKilled",
                    "startedAt": "2026-01-01T00:00:05Z", "finishedAt": "2026-01-01T00:00:09Z",
                }}}],
            },
        });
        let attempt = attempt(&pod).unwrap();
        let seconds = |time: Option<Timestamp>| time.map(|time| time.as_second() % 60);
        let times = [attempt.scheduled, attempt.started, attempt.finished].map(seconds);
        assert_eq!(times, [Some(1), Some(5), Some(9)]);
        assert_eq!(attempt.state, TaskState::Failed);
        assert_eq!(attempt.exit_code, Some(137));
        assert_eq!(attempt.reason.as_deref(), Some("OOMKilled"));
        assert_eq!((attempt.role.as_str(), attempt.index), ("worker", 3));
    }

    #[test]
    fn pods_that_wait() {
        let waiting = |node: &str, status: Value| {
            let pod = json!({
                "metadata": {
                    "name": "a",
                    "labels": {"longshore.dev/role": "worker"},
                    "annotations": {"batch.kubernetes.io/job-completion-index": "0"},
                },
                "spec": {"nodeName": node},
                "status": status,
            });
            let attempt = attempt(&pod).unwrap();
            (attempt.state, attempt.reason)
        };
        let conditions =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
        assert_eq!(
            waiting("", json!({"phase": "Pending", "conditions": conditions})),
            (TaskState::Pending, Some("Unschedulable".to_owned()))
        );
        let statuses =
            json!([{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
        assert_eq!(
            waiting(
                "n",
                json!({"phase": "Pending", "containerStatuses": statuses})
            ),
            (TaskState::Pulling, Some("ImagePullBackOff".to_owned()))
        );
        assert!(attempt(&json!({"metadata": {"name": "other"}})).is_none());
    }
}
