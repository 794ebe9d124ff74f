//! The door through which the server reads containers' logs. Who runs the
//! containers implements [`NodeLogs`].

use std::io;

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;

/// Which log, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid: a later pod of the same name is another one.
    pub uid: String,
    /// The container, also an init container.
    pub container: String,
    /// Go on with what is written later, until the container ends.
    pub follow: bool,
    /// The log of the run before the present one.
    pub previous: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only lines written at or after this time.
    pub since: Option<Timestamp>,
    /// Put the time before each line.
    pub timestamps: bool,
    /// Stop after this many bytes.
    pub limit_bytes: Option<u64>,
}

/// Why a log cannot be read. Each carries the message for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// There is no such pod or container here.
    #[error("{0}")]
    NotFound(String),
    /// The container has not started yet, or has had no previous run.
    #[error("{0}")]
    NotReady(String),
    /// Reading failed.
    #[error("{0}")]
    Failed(String),
}

/// A log as it is read.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Gives the logs of containers.
pub trait NodeLogs: Send + Sync {
    /// Opens a log. Dropping the stream ends the reading.
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>>;
}

/// No node, no logs: for servers on which nothing runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLogs;

impl NodeLogs for NoLogs {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        Box::pin(async move {
            Err(LogError::NotFound(format!(
                "no node runs pod {:?}, so it has no logs",
                request.pod
            )))
        })
    }
}
