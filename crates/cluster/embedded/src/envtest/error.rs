//! The errors of the programs.

use std::{io, net::SocketAddr};

/// The reason why a program of envtest cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvtestError {
    /// A flag has an invalid value.
    #[error("invalid value {value:?} of --{name}: {problem}")]
    Flag {
        /// The flag without its dashes.
        name: &'static str,
        /// The value.
        value: String,
        /// The problem.
        problem: String,
    },
    /// An address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Certificate(#[from] longshore_apiserver::TlsError),
    /// The audit log cannot be written, or its policy has a mistake.
    #[error(transparent)]
    Audit(#[from] crate::Error),
    /// The API server cannot start.
    #[error("cannot start the API server: {0}")]
    Start(String),
    /// The server stopped with an error.
    #[error("the server stopped: {0}")]
    Serve(io::Error),
    /// The operating system refused to register signal handlers.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}
