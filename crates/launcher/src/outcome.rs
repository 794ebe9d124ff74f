//! How a run ended, or an attempt that was not its last; and the note of its end on Jobs.

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
    /// All tasks that end by themselves succeeded.
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
    /// The same with all that is known of it, for programs.
    pub explanation: Option<Explanation>,
    /// How many gaps the logs have: so many events said that lines are missing.
    pub gaps: u32,
    /// When the run was submitted.
    pub began: Option<Timestamp>,
    /// When its last task ended, as far as that is known.
    pub finished: Option<Timestamp>,
}

/// A failed attempt that is not the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Why the attempt failed.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Which attempt of the role's tasks it was, from 1 on.
    pub attempt: u32,
    /// How many attempts may be made before the run fails.
    pub attempts: u32,
}

/// The end of a run, as it is noted on the Jobs that were stopped with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    pub(crate) ending: Ending,
    pub(crate) exit_code: i32,
}

impl JobEvidence {
    /// The end of the run that it was stopped with.
    pub(crate) fn end(&self) -> Option<End> {
        let text = self.metadata.annotations.get(names::ENDED)?;
        serde_json::from_str(text).ok()
    }
}
