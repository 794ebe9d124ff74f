//! The outcome of a run or of a failed attempt, and the record of the end on Jobs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    evidence::JobEvidence,
    explain::Explanation,
    names::{self, Task},
};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// All tasks other than those of service roles succeeded.
    Succeeded,
    /// A task failed.
    Failed,
    /// A task could not start.
    NotStarted,
    /// The user cancelled or removed it.
    Cancelled,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// 0; the exit code of the task that failed first; 3 when the cluster was
    /// stopped; 4 when a task could not start; 130 when the run was cancelled.
    pub exit_code: i32,
    /// The task that failed first.
    #[serde(flatten)]
    pub task: Option<Task>,
    /// Why, in one sentence that names the task.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// The structured explanation, for programs.
    pub explanation: Option<Explanation>,
    /// The number of reported gaps in the logs.
    pub gaps: u32,
    /// When the run was submitted.
    pub began: Option<Timestamp>,
    /// When its last task ended, if known.
    pub finished: Option<Timestamp>,
}

/// A failed attempt that is retried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Why the attempt failed.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The number of the attempt, from 1: of the task, or of the role if all tasks are
    /// restarted. Attempts that were disrupted are not counted.
    pub attempt: u32,
    /// The maximum number of attempts before the run fails.
    pub attempts: u32,
    /// True if the attempt counts. A disruption, as of a drained node, does not.
    pub counts: bool,
    /// True if all tasks of the run are restarted.
    pub whole_run: bool,
}

impl Retry {
    /// What happens: `attempt 1 of 3, restarting`.
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

/// The end of a run, as recorded on its Jobs before pods are stopped that show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// How the run ended.
    pub ending: Ending,
    /// The exit code of the run.
    pub exit_code: i32,
    /// When its last task ended, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
}

impl JobEvidence {
    /// The recorded end of its run.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        let text = self.metadata.annotations.get(names::ENDED)?;
        serde_json::from_str(text).ok()
    }
}
