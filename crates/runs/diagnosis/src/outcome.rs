//! The outcome of a run or of a failed attempt, and the record of the end on Jobs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    evidence::JobEvidence,
    explain::Explanation,
    names::{self, Task},
};

/// The kind of a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// All tasks succeeded, except tasks of service roles, which do not count.
    Succeeded,
    /// A task failed.
    Failed,
    /// A task could not start.
    NotStarted,
    /// The user cancelled or removed the run.
    Cancelled,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The kind of the end.
    pub ending: Ending,
    /// 0; the exit code of the task that failed first; 3 when the cluster was
    /// stopped; 4 when a task could not start; 130 when the run was cancelled.
    pub exit_code: i32,
    /// The task that failed first.
    #[serde(flatten)]
    pub task: Option<Task>,
    /// The cause, in one sentence that names the task.
    pub reason: String,
    /// The recommended action.
    pub remedy: Option<String>,
    /// The structured explanation, for programs.
    pub explanation: Option<Explanation>,
    /// The number of reported gaps in the logs.
    pub gaps: u32,
    /// The time when the run was submitted.
    pub began: Option<Timestamp>,
    /// The time when the last task ended, if known.
    pub finished: Option<Timestamp>,
}

/// A failed attempt that is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// The cause of the failure.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The number of the attempt, from 1: of the task, or of the role if all tasks are restarted.
    /// Disrupted attempts are not counted.
    pub attempt: u32,
    /// The maximum number of attempts before the run fails.
    pub attempts: u32,
    /// True if the attempt counts. A disruption, such as a drained node, does not count.
    pub counts: bool,
    /// True if all tasks of the run are restarted.
    pub whole_run: bool,
}

impl Retry {
    /// The consequence of the failure: `attempt 1 of 3, restarting`.
    #[must_use]
    pub fn consequence(&self) -> String {
        let what = if self.whole_run { " all tasks" } else { "" };
        match self.counts {
            true => format!(
                "attempt {} of {}, restarting{what}",
                self.attempt, self.attempts
            ),
            false => format!("does not count as a failure, restarting{what}"),
        }
    }

    /// The restarts so far, with the cause of the last one: `restarted 2 of 3 times because
    /// worker/1: …`.
    #[must_use]
    pub fn summary(&self) -> String {
        let (what, why) = (
            if self.whole_run {
                "all tasks restarted"
            } else {
                "restarted"
            },
            self.explanation.sentence(),
        );
        match self.counts {
            true => format!(
                "{what} {} of {} times because {why}",
                self.attempt,
                self.attempts.saturating_sub(1)
            ),
            false => format!("{what} because {why}, which does not count as a failure"),
        }
    }
}

/// The end of a run, recorded on its Jobs before the pods that show it are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The kind of the end.
    pub ending: Ending,
    /// The exit code of the run.
    pub exit_code: i32,
    /// The time when the last task ended, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
}

impl JobEvidence {
    /// The recorded end of the Job's run.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let text = self.metadata.annotations.get(names::ENDED)?;
        serde_json::from_str(text).ok()
    }
}
