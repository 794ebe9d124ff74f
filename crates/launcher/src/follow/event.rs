//! What happens in a run, and how it ended.

use std::fmt;

use serde::Serialize;

use crate::{explain::Explanation, names::Task};

/// What happens in a run. As JSON, an object whose `event` says which of them it is.
///
/// ```
/// use longshore_launcher::{Event, follow::LogLine, names::Task};
/// let task = Task { role: "worker".into(), index: 1 };
/// let event = Event::Log(LogLine { task, container: None, line: "epoch 1".into() });
/// assert_eq!(
///     serde_json::to_string(&event).unwrap(),
///     r#"{"event":"log","role":"worker","index":1,"line":"epoch 1"}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum Event {
    /// How far the roles have come, whenever that changes.
    Progress(Progress),
    /// Something holds a task up, or the cluster does not answer; it may still
    /// mend.
    Waiting(Explanation),
    /// A complete line of a task's log.
    Log(LogLine),
    /// The end; nothing comes after it.
    Finished(Outcome),
}

/// How far the roles have come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Each role.
    pub roles: Vec<RoleProgress>,
}

impl fmt::Display for Progress {
    /// `ps 1 running; worker 2 running, 1 pending`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, role) in self.roles.iter().enumerate() {
            let states = [
                (role.running, "running"),
                (role.pending, "pending"),
                (role.succeeded, "succeeded"),
                (role.failed, "failed"),
            ];
            let states = states.iter().filter(|(count, _)| *count > 0);
            let states: Vec<String> = states
                .map(|(count, state)| format!("{count} {state}"))
                .collect();
            let between = if n == 0 { "" } else { "; " };
            write!(f, "{between}{} {}", role.role, states.join(", "))?;
        }
        Ok(())
    }
}

/// How many tasks of a role are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RoleProgress {
    /// The role.
    pub role: String,
    /// Tasks whose command has not begun.
    pub pending: u32,
    /// Tasks whose command runs.
    pub running: u32,
    /// Tasks that ended well.
    pub succeeded: u32,
    /// Tasks that failed for good.
    pub failed: u32,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Whose it is.
    #[serde(flatten)]
    pub task: Task,
    /// The init container that wrote it, when the command did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The line, without its newline; what is no UTF-8 is replaced.
    pub line: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// 0; the exit code of the task that failed first; 4 when a task could
    /// not start; 130 when the run was cancelled.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        let role = |name: &str, running, pending| RoleProgress {
            role: name.into(),
            running,
            pending,
            ..RoleProgress::default()
        };
        let progress = Progress {
            roles: vec![role("ps", 1, 0), role("worker", 2, 1)],
        };
        let text = progress.to_string();
        assert_eq!(text, "ps 1 running; worker 2 running, 1 pending");
    }
}
