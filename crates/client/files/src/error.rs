//! The error type of this crate.

use std::{io, path::PathBuf};

/// An error that makes a private file or directory unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the operating system failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation: "create", "read", …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another user owns the file or directory, or may write to it.
    #[error("{} is not safe to use: {problem}", path.display())]
    Untrusted {
        /// The directory or file.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
