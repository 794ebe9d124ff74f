//! The events of a followed run.

use std::fmt;

use jiff::Timestamp;
use longshore_diagnosis::{
    explain::Explanation,
    names::Task,
    outcome::{Outcome, Retry},
    progress::Progress,
};
use serde::{Serialize, Serializer};

/// An event of a run. In JSON, an object whose `event` is the name of the variant.
///
/// ```
/// use longshore_launcher::{Event, follow::LogLine, names::Task};
/// let task = Task { role: "worker".into(), index: 1 };
/// let time = "2026-01-02T03:04:05.678Z".parse().ok();
/// let event = Event::Log(LogLine { task, container: None, time, line: "epoch 1".into() });
/// assert_eq!(
///     serde_json::to_string(&event).unwrap(),
///     r#"{"event":"log","role":"worker","index":1,"time":"2026-01-02T03:04:05.678Z","line":"epoch 1"}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// The progress of the roles, whenever it changes.
    Progress(Progress),
    /// Something blocks a task, or the cluster does not answer. The problem may resolve.
    Waiting(Explanation),
    /// A task failed, and its Job restarts it.
    Retry(Retry),
    /// A complete line of a task's log.
    Log(LogLine),
    /// Lines of a task's log are missing before the next one.
    Gap(LogGap),
    /// The end of the run. This is the last event.
    Finished(Outcome),
}

impl Event {
    /// The values of `event` in JSON, in the order of the variants.
    pub const KINDS: &[&str] = &["progress", "waiting", "retry", "log", "gap", "finished"];
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The init container that wrote the line, if the command did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The time when the node received the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The line without its newline. Invalid UTF-8 is replaced.
    pub line: String,
}

/// The current state of an unfinished line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// The init container that writes the line, if the command does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The text since the last carriage return.
    pub text: String,
}

/// Lines of a log that were, or may have been, not delivered. In JSON, `message` is the text of
/// its [`Display`](fmt::Display).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGap {
    /// The task.
    pub task: Task,
    /// The init container that wrote the lines, if the command did not.
    pub container: Option<String>,
    /// The number of the attempt of the task, from 1.
    pub attempt: u32,
    /// The time of the last line before the gap. `None` if there is no such line.
    pub from: Option<Timestamp>,
    /// The time of the first line after the gap. `None` if there is no such line.
    pub to: Option<Timestamp>,
    /// The number of missing bytes. Kubernetes does not report it, so this is `None`.
    pub bytes: Option<u64>,
    /// The reason why the lines were not delivered.
    pub cause: GapCause,
}

/// The reason why lines of a log were not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum GapCause {
    /// The node rotated the log while it was not being read, or was read too slowly.
    Rotated,
    /// The pod was deleted, together with its log.
    PodDeleted,
    /// The cluster has removed the log to limit its disk space.
    Removed,
    /// The server returned errors or did not answer until the follower gave up.
    Unreadable,
    /// The run ended, and the rest of the log did not arrive in time.
    TimedOut,
}

impl Serialize for LogGap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            #[serde(flatten)]
            task: &'a Task,
            #[serde(skip_serializing_if = "Option::is_none")]
            container: &'a Option<String>,
            attempt: u32,
            from: Option<Timestamp>,
            to: Option<Timestamp>,
            bytes: Option<u64>,
            cause: GapCause,
            message: String,
        }
        let fields = Fields {
            task: &self.task,
            container: &self.container,
            attempt: self.attempt,
            from: self.from,
            to: self.to,
            bytes: self.bytes,
            cause: self.cause,
            message: self.to_string(),
        };
        fields.serialize(serializer)
    }
}

impl fmt::Display for LogGap {
    /// `lines between A and B may be missing: the log was rotated ...`. Contains the attempt if the
    /// pod is gone, because another pod of the task may follow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self.cause, GapCause::PodDeleted | GapCause::Removed) {
            write!(f, "attempt {}: ", self.attempt)?;
        }
        match (self.from, self.to) {
            (Some(from), Some(to)) => write!(f, "lines between {from} and {to} may be missing")?,
            (Some(from), None) => write!(f, "lines after {from} may be missing")?,
            (None, Some(to)) => write!(f, "lines before {to} may be missing")?,
            (None, None) if self.cause == GapCause::Rotated => {
                f.write_str("the first lines are missing")?;
            }
            (None, None) => f.write_str("lines may be missing")?,
        }
        f.write_str(match self.cause {
            GapCause::Rotated => ": the log was rotated before they were read",
            GapCause::PodDeleted => ": the pod was deleted before its log was read to the end",
            GapCause::Removed => ": the log was removed to limit the disk space of the cluster",
            GapCause::Unreadable => ": the cluster did not return the rest of the log",
            GapCause::TimedOut => ": the rest of the log did not arrive in time",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_diagnosis::{explain::Cause, outcome::Ending};

    /// The position of the event's kind in the list.
    fn place(event: &Event) -> usize {
        match event {
            Event::Progress(_) => 0,
            Event::Waiting(_) => 1,
            Event::Retry(_) => 2,
            Event::Log(_) => 3,
            Event::Gap(_) => 4,
            Event::Finished(_) => 5,
        }
    }

    #[test]
    fn kinds_match_the_json() {
        let task = Task {
            role: "worker".into(),
            index: 1,
        };
        let explanation = Explanation::new(Cause::Queued, "it waits", "wait");
        let retry = Retry {
            explanation: explanation.clone(),
            attempt: 1,
            attempts: 2,
            counts: true,
            whole_run: false,
        };
        let line = LogLine {
            task: task.clone(),
            container: None,
            time: None,
            line: String::new(),
        };
        let gap = LogGap {
            task,
            container: None,
            attempt: 1,
            from: None,
            to: None,
            bytes: None,
            cause: GapCause::Rotated,
        };
        let outcome = Outcome {
            ending: Ending::Succeeded,
            exit_code: 0,
            task: None,
            reason: String::new(),
            remedy: None,
            explanation: None,
            gaps: 0,
            began: None,
            finished: None,
        };
        let events = [
            Event::Progress(Progress::default()),
            Event::Waiting(explanation),
            Event::Retry(retry),
            Event::Log(line),
            Event::Gap(gap),
            Event::Finished(outcome),
        ];
        assert_eq!(events.len(), Event::KINDS.len());
        for event in events {
            let json = serde_json::to_value(&event).unwrap_or_default();
            assert_eq!(json["event"], Event::KINDS[place(&event)]);
        }
    }
}
