//! The protocol of `longshore dev` between the client and the supervisor in a pod.
//!
//! The client executes `longshore bootstrap receive` in the container of each task, which connects
//! its standard streams to the supervisor of the task. The client sends orders: a JSON header in
//! one line, followed by the bytes of an archive. The supervisor answers with reports: one JSON
//! object per line. The state of a task's folder is a text that the client chooses with each order;
//! a new pod has the state [`PACKED`]. After a lost connection, the client learns the state from
//! [`Report::Hello`] and sends the difference to its own state.
//!
//! A client begins with the number of its session. Sessions are numbered in the order in which they
//! attach to the run; the first has the number 0. A task executes only the orders of the latest
//! session, and reports to the others that they were replaced. A client that does not know the
//! state of a task, because another session has sent it, requests a listing of the code
//! ([`Request::Describe`]).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bundle::Listing;

/// The state of a folder to which no changes have been applied.
pub const PACKED: &str = "packed";

/// The maximum size in bytes of the files of one order, and of its archive.
pub const MAX_CHANGE_BYTES: u64 = 1 << 30;

/// The maximum length in bytes of an order's header.
pub const MAX_HEADER_BYTES: u64 = 16 << 20;

/// The default time that a command may take to end after SIGTERM.
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

/// The maximum length in bytes of a report with a listing.
pub const MAX_LISTING_BYTES: u64 = 64 << 20;

/// The settings of a task of `longshore dev`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevSpec {
    /// The time that the command may take to end after SIGTERM before it is killed.
    pub grace: Duration,
    /// The record for clients that attach later.
    pub record: DevRecord,
}

/// The record on the Jobs of a run for clients that attach to it later, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DevRecord {
    /// The folder of the code on the client's machine.
    pub folder: String,
    /// The .gitignore patterns of files that are not sent, in addition to ignore files.
    pub ignore: Vec<String>,
    /// [`DevSpec::grace`] in milliseconds.
    pub grace_milliseconds: u64,
}

/// A message to the supervisor of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Request {
    /// The first message of a connection: the number of the client's session. The answer is
    /// another [`Report::Hello`], or [`Report::Replaced`].
    Begin(u64),
    /// Requests [`Report::Listing`].
    Describe,
    /// An order, followed by its archive.
    Order(Order),
}

/// An order to the supervisor of a task: the header before the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The state of the folder after the order.
    pub state: String,
    /// The size of the archive in bytes, or 0 without an archive.
    pub size: u64,
    /// The archive's sha256, in hexadecimal.
    pub sha256: String,
    /// Paths to remove first. The contents of a folder precede the folder.
    pub removed: Vec<String>,
    /// True to restart the command. If false, the command starts only if it has not yet been
    /// started.
    pub restart: bool,
}

/// The state of a task's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandState {
    /// The command has not been started yet.
    Waiting,
    /// The command is running.
    Running,
    /// The command has ended.
    Ended {
        /// The exit code, or 128 plus the number of the signal that terminated the command.
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
        /// The state of the command.
        command: CommandState,
    },
    /// An order has been executed.
    Done {
        /// The state of the folder.
        state: String,
        /// True if the command was started.
        started: bool,
    },
    /// An order was not executed. The folder is unchanged, unless `state` differs.
    Refused {
        /// The state of the folder, or empty if it is unknown.
        state: String,
        /// The reason.
        problem: String,
    },
    /// The code in the folder of the task, as it was received. Files that the command has
    /// created are not included.
    Listing(Listing),
    /// A later session has taken over the task. This is the last message of a connection.
    Replaced,
    /// The command has ended by itself.
    Ended {
        /// The exit code of the command.
        code: i32,
    },
}
