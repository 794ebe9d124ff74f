//! Messages between the tasks of a run: one JSON object per line.

use std::{
    io::{self, BufRead, Read as _, Write},
    time::Duration,
};

use longshore_diagnosis::names::Task;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The maximum length of a line in bytes.
const LONGEST: u64 = 4096;
/// The interval at which each side sends a message.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// The time without a message after which a connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// A report of a task to the first task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
    /// The task is connected, and its command does not run.
    Join {
        role: String,
        index: u32,
        /// The number of replacements of the task's pod.
        replaced: u32,
        /// The last attempt that the task has run, or 0.
        last: u32,
    },
    /// The command has ended by itself.
    Ended { attempt: u32, code: i32 },
    /// The command was ended, as ordered.
    Stopped,
    /// Nothing has changed.
    Beat,
}

/// An order of the first task to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Order {
    /// Start the command.
    Start { attempt: u32 },
    /// End the command, because all tasks start again.
    Stop { reason: String },
    /// Exit with the exit code of the command, which was the first that failed. The Job counts the
    /// failure, and replaces the pod if its limit permits it.
    Fail,
    /// All tasks have succeeded: exit.
    Done,
    /// Nothing has changed.
    Beat,
}

/// Writes a message.
pub(super) fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a line, which other programs may have sent.
pub(super) fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.take(LONGEST).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a message.
pub(super) fn receive<T: DeserializeOwned>(stream: &mut impl BufRead) -> io::Result<T> {
    Ok(serde_json::from_str(&line(stream)?)?)
}

impl Report {
    /// The task that joins.
    pub(super) fn joining(&self) -> Option<Task> {
        match self {
            Self::Join { role, index, .. } => Some(Task {
                role: role.clone(),
                index: *index,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_are_lines() {
        let mut text = Vec::new();
        let stop = Order::Stop {
            reason: "a\nb".to_owned(),
        };
        for order in [Order::Beat, stop.clone()] {
            send(&mut text, &order).unwrap();
        }
        let mut text = text.as_slice();
        assert_eq!(receive::<Order>(&mut text).unwrap(), Order::Beat);
        assert_eq!(receive::<Order>(&mut text).unwrap(), stop);
        assert!(receive::<Order>(&mut text).is_err());
    }

    #[test]
    fn long_and_invalid_lines_are_errors() {
        let long = vec![b'a'; 5000];
        assert!(line(&mut long.as_slice()).is_err());
        assert!(receive::<Report>(&mut b"{\"start\":{}}\n".as_slice()).is_err());
        assert!(receive::<Report>(&mut b"\xff\n".as_slice()).is_err());
    }
}
