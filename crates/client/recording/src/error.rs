//! The errors of writing, reading or serving a recording.

use std::{io, path::PathBuf};

/// A problem with a recording or with the server for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: io::Error,
    },
    /// The file for a new recording exists and is not a recording.
    #[error("{} exists and is not a recording: choose another file", .0.display())]
    Foreign(PathBuf),
    /// The file is not a valid recording.
    #[error("{}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: FormatError,
    },
    /// The server cannot listen, or its kubeconfig cannot be written.
    #[error("cannot serve on 127.0.0.1: {0}")]
    Listen(#[source] io::Error),
    /// A client for the server cannot be created.
    #[error(transparent)]
    Client(#[from] longshore_client::Error),
}

/// The reason why the text of a recording is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file is empty.
    #[error("the recording is empty: its recorder ended before the first complete line")]
    Empty,
    /// The first line is not the first line of a recording.
    #[error(
        "it is not a recording of `longshore record`: its first line is not {{\"recording\":1,…}}"
    )]
    NotARecording,
    /// A later version of the format.
    #[error("it has version {0} of the format, of a later release of Longshore: update Longshore")]
    Version(u64),
    /// The file exceeds a limit.
    #[error("it has more than {limit} {unit}: record fewer requests in one file")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// A line is not valid.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line; the first is 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// Adds the path to a problem of a file.
pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}
