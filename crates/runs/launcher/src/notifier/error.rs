//! Errors that end the reports about a run.

use std::{io, path::PathBuf};

use longshore_diagnosis::names;

use crate::follow;

/// An error that ends the reports about a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// The runtime cannot be started.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// The URL cannot be read.
    #[error("cannot read the URL of the webhook from {}: {source}", path.display())]
    Url {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The Secret does not contain a URL.
    #[error(
        "the Secret of the webhook has no http or https URL: correct it, and submit the run again"
    )]
    NotAUrl,
    /// The webhook refuses the message, or has not accepted it in time.
    #[error(
        "the webhook at {host} did not accept the message about the state {state}: {problem} (after {attempts} attempts)"
    )]
    Undelivered {
        /// The host of the URL.
        host: String,
        /// The state.
        state: &'static str,
        /// The last problem.
        problem: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The run cannot be found.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The run cannot be followed.
    #[error(transparent)]
    Follow(#[from] follow::Error),
    /// The connection was closed.
    #[error("the connection to the cluster was closed")]
    Closed,
}

impl NotifyError {
    /// The exit code: [`names::UNDELIVERED`] if another attempt would also fail.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Undelivered { .. } | Self::NotAUrl => {
                u8::try_from(names::UNDELIVERED).unwrap_or(1)
            }
            _ => 1,
        }
    }
}
