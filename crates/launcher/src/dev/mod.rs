//! The protocol of `longshore dev` between the client and the supervisor in a pod.
//!
//! The client executes `longshore bootstrap receive` in the container of each task, which
//! connects its standard streams to the supervisor of the task. The client sends orders: a JSON
//! header in one line, followed by the bytes of an archive. The supervisor answers with reports:
//! one JSON object per line. The state of a task's folder is a text that the client chooses with
//! each order; a new pod has the state [`PACKED`]. After a lost connection, the client learns the
//! state from [`Report::Hello`] and sends the difference to its own.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The state of a folder to which no changes have been applied.
pub const PACKED: &str = "packed";

/// The maximum size in bytes of the files of one order, and of its archive.
pub const MAX_CHANGE_BYTES: u64 = 1 << 30;

/// The maximum length in bytes of an order's header.
pub const MAX_HEADER_BYTES: u64 = 16 << 20;

/// How long a command may take to end after SIGTERM, by default.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(3);

/// .gitignore patterns of the temporary files of editors, which are neither packed nor sent.
pub const EDITOR_FILES: &[&str] = &[
    ".*.sw[a-p]",
    ".*.swx",
    "*~",
    "4913",
    ".#*",
    "#*#",
    "*___jb_tmp___",
    "*___jb_old___",
];

/// How `longshore dev` runs a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevSpec {
    /// How long the command may take to end after SIGTERM before it is killed.
    pub grace: Duration,
}

/// An order to the supervisor of a task: the header before the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The state of the folder afterwards.
    pub state: String,
    /// The size of the archive in bytes; 0 for none.
    pub size: u64,
    /// The archive's sha256, in hexadecimal.
    pub sha256: String,
    /// Paths to remove first, the contents of a folder before the folder.
    pub removed: Vec<String>,
    /// Whether to restart the command. Without it, the command starts only if it has not yet
    /// been started.
    pub restart: bool,
}

/// The command of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandState {
    /// It has not been started yet.
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Ended {
        /// The exit code; 128 plus the signal number if a signal terminated it.
        code: i32,
    },
}

/// A message of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    /// The first message of a connection.
    Hello {
        /// The state of the folder.
        state: String,
        /// The command.
        command: CommandState,
    },
    /// An order has been executed.
    Done {
        /// The state of the folder.
        state: String,
        /// Whether the command was started.
        started: bool,
    },
    /// An order was not executed. The folder is unchanged, unless the state says otherwise.
    Refused {
        /// The state of the folder; empty if it is unknown.
        state: String,
        /// Why.
        problem: String,
    },
    /// The command has ended by itself.
    Ended {
        /// Its exit code.
        code: i32,
    },
}
