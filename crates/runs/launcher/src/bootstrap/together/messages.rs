//! What the tasks of a run say to each other: one JSON object per line.

use std::{
    io::{self, BufRead, Read as _, Write},
    time::Duration,
};

use longshore_diagnosis::names::Task;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The maximum length of a line in bytes.
const LONGEST: u64 = 4096;
/// How often each side sends something.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// How long a side may be silent: then the connection counts as lost.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// What a task says to the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Report {
    /// It is there, and its command does not run.
    Join {
        role: String,
        index: u32,
        /// How often its pod was replaced.
        replaced: u32,
        /// The last attempt that it has run, or 0.
        last: u32,
    },
    /// Its command has ended by itself.
    Ended { attempt: u32, code: i32 },
    /// Its command was ended, as ordered.
    Stopped,
    /// Nothing has changed.
    Beat,
}

/// What the first task says to the others, and to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Order {
    /// Start the command.
    Start { attempt: u32 },
    /// End the command: all start again.
    Stop { reason: String },
    /// The command was the first that failed: exit with its code. The Job counts the failure,
    /// and replaces the pod if it may.
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
