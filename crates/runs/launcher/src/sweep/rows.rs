//! The rows of the table of a sweep: its combinations with their states and metrics, merged with
//! the combinations of retries.

use std::{cmp::Ordering, collections::BTreeMap};

use jiff::Timestamp;
use longshore_diagnosis::{
    evidence::{JobEvidence, index_set},
    names::Task,
};
use serde_json::{Value, json};

use super::Sweep;
use crate::metric_values::{Metrics, shown};

/// The state of a combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CombinationState {
    /// The task has not started.
    Pending,
    /// The task is running.
    Running,
    /// The task succeeded.
    Succeeded,
    /// The task failed, and is not restarted.
    Failed,
    /// The run ended before its task did.
    Cancelled,
}

impl CombinationState {
    /// The name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The last attempt of a task, from its pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TaskRun {
    pub(crate) pod: String,
    pub(crate) container: String,
    pub(crate) has_started: bool,
    pub(crate) has_succeeded: bool,
    pub(crate) has_failed: bool,
    /// True if the pod was deleted.
    pub(crate) is_deleted: bool,
    /// The number of failed attempts.
    pub(crate) failures: u32,
    pub(crate) exit_code: Option<i32>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Option<Timestamp>,
}

/// A run of a sweep, or of its retried combinations.
#[derive(Debug, Clone, Default)]
pub struct SweepRun {
    pub(crate) run: String,
    pub(crate) role: String,
    pub(crate) sweep: Sweep,
    pub(crate) job: JobEvidence,
    /// The last attempt of each task.
    pub(crate) tasks: BTreeMap<u32, TaskRun>,
    /// The metrics of each task.
    pub(crate) metrics: BTreeMap<u32, Metrics>,
}

/// A combination of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The index in the sweep.
    pub index: u32,
    /// The last run of the combination.
    pub run: String,
    /// The task in that run.
    pub task: Task,
    /// The values of the parameters, in their order.
    pub values: Vec<String>,
    /// The state of the combination.
    pub state: CombinationState,
    /// The exit code of the command, if it has ended.
    pub exit_code: Option<i32>,
    /// The time when the command started.
    pub started: Option<Timestamp>,
    /// The time when the command ended.
    pub finished: Option<Timestamp>,
    /// The last values of the task's metrics.
    pub metrics: Metrics,
}

impl Row {
    /// The row as JSON.
    #[must_use]
    pub fn to_json(&self, parameters: &[String]) -> Value {
        let values = parameters.iter().zip(&self.values);
        let values = values.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        json!({
            "index": self.index,
            "run": self.run,
            "task": self.task.to_string(),
            "parameters": Value::Object(values.collect()),
            "state": self.state.as_str(),
            "exitCode": self.exit_code,
            "started": self.started,
            "finished": self.finished,
            "metrics": self.metrics.to_json(),
        })
    }

    /// The value of a metric as text.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<String> {
        self.metrics.get(name).map(shown)
    }

    /// Compares by a metric, or by the parameter at a position. Rows without a number are last.
    #[must_use]
    pub fn compare(
        &self,
        other: &Self,
        by: &str,
        parameter: Option<usize>,
        reverse: bool,
    ) -> Ordering {
        let directed = |order: Ordering| if reverse { order.reverse() } else { order };
        let number = |row: &Self| match parameter {
            Some(position) => row.values.get(position)?.parse().ok(),
            None => row.metrics.get(by),
        };
        let number = |row| number(row).filter(|number: &f64| !number.is_nan());
        match (number(self), number(other)) {
            (Some(own), Some(others)) => directed(own.total_cmp(&others)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => {
                let text = |row: &Self| row.values.get(parameter?).cloned();
                directed(text(self).cmp(&text(other)))
            }
        }
    }
}

impl SweepRun {
    fn state(&self, index: u32, is_completed: bool, is_failed: bool) -> CombinationState {
        let job = &self.job;
        // A queue also suspends Jobs.
        let is_stopped = job.spec.suspend && job.stopped_at().is_some();
        let has_ended = job.is_over() || job.is_cancelled() || is_stopped;
        let Some(task) = self.tasks.get(&index) else {
            return match (is_completed, is_failed) {
                (true, _) => CombinationState::Succeeded,
                (_, true) => CombinationState::Failed,
                _ if has_ended => CombinationState::Cancelled,
                _ => CombinationState::Pending,
            };
        };
        let limit = job.spec.backoff_limit_per_index.unwrap_or(0);
        if task.has_succeeded || is_completed {
            CombinationState::Succeeded
        } else if is_failed {
            CombinationState::Failed
        } else if task.is_deleted && has_ended {
            CombinationState::Cancelled
        } else if task.has_failed && (has_ended || task.failures > limit) {
            CombinationState::Failed
        } else if task.has_failed {
            // Another attempt follows.
            CombinationState::Pending
        } else if has_ended {
            CombinationState::Cancelled
        } else if task.has_started {
            CombinationState::Running
        } else {
            CombinationState::Pending
        }
    }

    fn rows(&self) -> Vec<Row> {
        let count = self.sweep.combinations.len();
        let status = &self.job.status;
        let completed = index_set(&status.completed_indexes, count);
        let failed = index_set(&status.failed_indexes, count);
        let indices = (0_u32..).zip(&self.sweep.combinations);
        let indices = indices.zip(completed.into_iter().zip(failed));
        let rows = indices.map(|((index, values), (is_completed, is_failed))| {
            let task = self.tasks.get(&index);
            let state = self.state(index, is_completed, is_failed);
            Row {
                index,
                run: self.run.clone(),
                task: Task {
                    role: self.role.clone(),
                    index,
                },
                values: values.clone(),
                state,
                exit_code: task.and_then(|task| task.exit_code),
                started: task.and_then(|task| task.started),
                finished: task.and_then(|task| task.finished),
                metrics: self.metrics.get(&index).cloned().unwrap_or_default(),
            }
        });
        rows.collect()
    }
}

/// The combinations of a sweep with the results of their last runs. `retries` are in the order of
/// their creation.
#[must_use]
pub fn combine(first: &SweepRun, retries: &[SweepRun]) -> Vec<Row> {
    let mut rows = first.rows();
    for retry in retries {
        let Some(of) = &retry.sweep.retry else {
            continue;
        };
        for (row, index) in retry.rows().into_iter().zip(&of.indices) {
            if let Some(known) = rows.get_mut(*index as usize) {
                *known = Row {
                    index: *index,
                    values: std::mem::take(&mut known.values),
                    ..row
                };
            }
        }
    }
    rows
}
