//! The interface through which the server reads container logs. The component
//! that runs the containers implements [`NodeLogs`].

use std::io;

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;

/// Selects a log and a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid, which distinguishes it from a later pod with the same
    /// name.
    pub uid: String,
    /// The container; init containers are included.
    pub container: String,
    /// Continue with new output until the container ends.
    pub follow: bool,
    /// The log of the previous run.
    pub previous: bool,
    /// Limits the log to the last lines.
    pub tail_lines: Option<u64>,
    /// Limits the log to lines written at or after this time.
    pub since: Option<Timestamp>,
    /// Prefix each line with its time.
    pub timestamps: bool,
    /// Ends the log after this many bytes.
    pub limit_bytes: Option<u64>,
}

/// Why a log cannot be read. Each variant has the message for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// There is no such pod or container on this node.
    #[error("{0}")]
    NotFound(String),
    /// The container has not started yet or has no previous run.
    #[error("{0}")]
    NotReady(String),
    /// Reading failed.
    #[error("{0}")]
    Failed(String),
}

/// The content of a log.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Provides the logs of containers.
pub trait NodeLogs: Send + Sync {
    /// Opens a log. Drop the stream to stop reading.
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>>;
}

/// An implementation without logs, for servers without nodes.
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
