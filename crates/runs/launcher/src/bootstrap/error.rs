//! Errors of a task that cannot run its command.

use std::{io, path::PathBuf};

use longshore_archive::UnpackError;
use longshore_diagnosis::{names, start_problem::StartProblem};
use longshore_resolver::{SpecError, names::NamesError, render::RenderError};

use crate::{data::DataError, store::DownloadError};

/// An error of a task that cannot run its command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The run's configuration file is missing or invalid.
    #[error("cannot read the run's configuration {}: {problem}; this command only runs in the pods of a run", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A required variable is missing or invalid.
    #[error("the variable {name} {problem}; this command only runs in the pods of a run")]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// The problem.
        problem: String,
    },
    /// No supervisor of `longshore dev` runs in this container.
    #[error("the task does not receive changes: {source}; only tasks of `longshore dev` do")]
    NotDev {
        /// The cause.
        source: io::Error,
    },
    /// The session of an SSH client cannot be executed.
    #[error("cannot execute the session of an SSH client: {source}")]
    Ssh {
        /// The cause.
        source: io::Error,
    },
    /// The code cannot be fetched.
    #[error("the code could not be fetched: {0}")]
    Code(#[source] Box<Self>),
    /// The bundle was removed before the task read it.
    #[error(
        "the bundle {} no longer exists; submit the run again to upload its code again",
        path.display()
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The bundle cannot be read.
    #[error("cannot read the bundle {}: {source}; check that the store is mounted on this node", path.display())]
    Bundle {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The bundle is a pipe, a device or a folder, whose content may change while it is read.
    #[error(
        "the bundle {} is not a regular file; delete it from the store and submit the run again",
        path.display()
    )]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// The recorded environment of the invoking shell cannot be read.
    #[error("cannot read the variable {}: {source}", names::CALLER_VARIABLE)]
    Caller {
        /// The cause.
        source: serde_json::Error,
    },
    /// The bundle cannot be fetched.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// Data cannot be fetched.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The bundle differs from the uploaded one.
    #[error(
        "the bundle {place} is damaged: its sha256 is {found}, not {expected}; delete it from the store and submit the run again"
    )]
    Damaged {
        /// The file, or the location in the store.
        place: String,
        /// The sha256 of the bundle found.
        found: String,
        /// The sha256 of the uploaded bundle.
        expected: String,
    },
    /// The bundle cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// A folder cannot be created, or a file cannot be copied.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The run does not have this task.
    #[error("this pod is not a task of the run: {0}")]
    Task(#[from] SpecError),
    /// The run's tasks do not form a valid cluster spec.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The names of peers did not resolve in time.
    #[error(transparent)]
    Peers(#[from] NamesError),
    /// The sweep has no combination for the task's index.
    #[error(
        "the sweep has no combination {index}: it has {count}; submit it with more instead of scaling its Job"
    )]
    Combination {
        /// The index.
        index: u32,
        /// The number of combinations.
        count: usize,
    },
    /// The task does not upload outputs.
    #[error("this task uploads no outputs: its run requests none, or the cluster keeps them")]
    NoOutputs,
    /// The outputs cannot be uploaded.
    #[error("the outputs were not uploaded: {0}")]
    Outputs(String),
    /// The command exceeded its time limit.
    #[error("the command took longer than `task_timeout`, {seconds} s")]
    Overdue {
        /// The limit.
        seconds: u64,
    },
    /// The other tasks did not return in time, so that the task could not start again with them.
    #[error("{missing} within {seconds} s (`start_timeout`): {problem}")]
    Alone {
        /// The event that did not occur.
        missing: &'static str,
        /// The time that the task waited.
        seconds: u64,
        /// The last problem.
        problem: String,
    },
    /// The first task cannot wait for the others.
    #[error(
        "cannot listen on {address} for the other tasks: {source}; choose other ports with `port`"
    )]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// No command was given.
    #[error("no command to run: give one after `--`")]
    NoCommand,
    /// The command does not exist.
    #[error("command not found: {command}{}", because(problem.as_ref().map(|problem| problem.phrase())))]
    NotFound {
        /// The command.
        command: String,
        /// The reason why the command may not have been found.
        problem: Option<StartProblem>,
    },
    /// The command cannot be run.
    #[error("cannot run {command}: {}", described(problem.as_ref(), source))]
    CannotRun {
        /// The command.
        command: String,
        /// The cause, if it is known, and details.
        problem: Option<(StartProblem, String)>,
        /// The system's error.
        source: io::Error,
    },
}

fn because(problem: Option<&str>) -> String {
    problem.map_or_else(String::new, |problem| format!(" ({problem})"))
}

fn described(problem: Option<&(StartProblem, String)>, source: &io::Error) -> String {
    match problem {
        Some((problem, details)) if details.is_empty() => problem.phrase().to_owned(),
        Some((problem, details)) => format!("{}: {details}", problem.phrase()),
        None => source.to_string(),
    }
}

impl BootstrapError {
    /// The exit code: 127 if the command does not exist and 126 if it cannot be executed, as in
    /// shells; 124 if it took too long, as with `timeout`; 125 for other failures.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::CannotRun { .. } => 126,
            Self::Overdue { .. } => 124,
            _ => 125,
        }
    }
}
