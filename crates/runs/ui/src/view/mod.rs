//! Data of a run for pages: the state and the timeline of each task, the series of its usage, and
//! the axes of a sweep. Pure.

mod axes;
mod pod;
mod timeline;
mod usage;

use std::collections::BTreeMap;

use longshore_launcher::{RunState, runs::RunRole};

pub(crate) use axes::{AXIS_LENGTH, Axis, MOST_METRICS, Scale, axes};
pub(crate) use pod::{TaskAttempt, attempt};
pub(crate) use timeline::{Bar, bars};
pub(crate) use usage::{Chart, Measure, Series, Step, TaskLine, axis_end, charts};

/// The maximum number of tasks of a role that a page shows.
const MOST_TASKS: u32 = 2000;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// The task has no pod yet, or its pod waits for a node.
    Pending,
    /// The pod has a node, which pulls images and prepares volumes.
    Pulling,
    /// The command runs.
    Running,
    /// The command succeeded.
    Succeeded,
    /// The command failed.
    Failed,
    /// The run ended, and the task has no pod any more.
    Gone,
}

impl TaskState {
    /// The name, also of the CSS class.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Pulling => "pulling",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Gone => "gone",
        }
    }
}

/// A task of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskView {
    pub(crate) index: u32,
    pub(crate) state: TaskState,
    /// The pods of the task, oldest first.
    pub(crate) attempts: Vec<TaskAttempt>,
}

/// The tasks of a role.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoleView {
    pub(crate) name: String,
    pub(crate) is_service: bool,
    pub(crate) tasks: Vec<TaskView>,
    /// The number of tasks that are not in `tasks`.
    pub(crate) more: u32,
}

/// The tasks of a run, by role and index.
pub(crate) fn tasks(
    roles: &[RunRole],
    state: RunState,
    attempts: Vec<TaskAttempt>,
) -> Vec<RoleView> {
    let mut by_task: BTreeMap<(String, u32), Vec<TaskAttempt>> = BTreeMap::new();
    for attempt in attempts {
        let key = (attempt.role.clone(), attempt.index);
        by_task.entry(key).or_default().push(attempt);
    }
    let view = |role: &RunRole| {
        let shown = role.count.min(MOST_TASKS);
        let tasks = (0..shown).map(|index| {
            let attempts = by_task.get(&(role.name.clone(), index));
            let mut attempts = attempts.cloned().unwrap_or_default();
            attempts.sort_by(|a, b| (a.created, &a.pod).cmp(&(b.created, &b.pod)));
            // The same rule as for the run: the newest pod decides, unless one has succeeded.
            let mut succeeded = attempts.iter().map(|attempt| attempt.state);
            let succeeded = succeeded.find(|state| *state == TaskState::Succeeded);
            let last = attempts.last().map(|attempt| attempt.state);
            let state = succeeded.or(last).unwrap_or(match state.is_over() {
                true => TaskState::Gone,
                false => TaskState::Pending,
            });
            TaskView {
                index,
                state,
                attempts,
            }
        });
        RoleView {
            name: role.name.clone(),
            is_service: role.service,
            tasks: tasks.collect(),
            more: role.count.saturating_sub(shown),
        }
    };
    roles.iter().map(view).collect()
}

/// The number of tasks in each state, in the order of the states.
pub(crate) fn counts(roles: &[RoleView]) -> Vec<(TaskState, usize)> {
    const ALL: [TaskState; 6] = [
        TaskState::Failed,
        TaskState::Running,
        TaskState::Pulling,
        TaskState::Pending,
        TaskState::Succeeded,
        TaskState::Gone,
    ];
    let count = |state: TaskState| {
        let tasks = roles.iter().flat_map(|role| &role.tasks);
        tasks.filter(|task| task.state == state).count()
    };
    let counts = ALL.into_iter().map(|state| (state, count(state)));
    counts.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn role(count: u32) -> Vec<RunRole> {
        vec![RunRole {
            name: "worker".to_owned(),
            count,
            service: false,
        }]
    }

    fn pod(name: &str, index: &str, created: &str, phase: &str) -> TaskAttempt {
        let pod = json!({
            "metadata": {
                "name": name,
                "creationTimestamp": created,
                "labels": {"longshore.dev/role": "worker"},
                "annotations": {"batch.kubernetes.io/job-completion-index": index},
            },
            "status": {"phase": phase},
        });
        attempt(&pod).unwrap()
    }

    #[test]
    fn the_newest_pod_decides_the_state_of_a_task() {
        let pods = vec![
            pod("b", "0", "2026-01-01T00:00:09Z", "Pending"),
            pod("a", "0", "2026-01-01T00:00:01Z", "Failed"),
            pod("c", "1", "2026-01-01T00:00:01Z", "Succeeded"),
        ];
        let roles = tasks(&role(3), RunState::Running, pods);
        let states: Vec<_> = roles[0].tasks.iter().map(|task| task.state).collect();
        let wanted = [TaskState::Pending, TaskState::Succeeded, TaskState::Pending];
        assert_eq!(states, wanted);
        assert_eq!(roles[0].tasks[0].attempts.len(), 2);
        assert_eq!(
            counts(&roles),
            [(TaskState::Pending, 2), (TaskState::Succeeded, 1)]
        );
    }

    #[test]
    fn tasks_without_pods_of_an_ended_run_are_gone() {
        let roles = tasks(&role(1), RunState::Cancelled, Vec::new());
        assert_eq!(roles[0].tasks[0].state, TaskState::Gone);
    }

    #[test]
    fn the_number_of_shown_tasks_is_limited() {
        let roles = tasks(&role(u32::MAX), RunState::Pending, Vec::new());
        assert_eq!(roles[0].tasks.len(), 2000);
        assert_eq!(roles[0].more, u32::MAX - 2000);
    }
}
