//! Logs of containers.

use std::io;

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};
use jiff::Timestamp;

/// Selects a log and a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid, which distinguishes it from a later pod with the same
    /// name.
    pub uid: String,
    /// The container, which can be an init container; may be empty if the pod has
    /// only one.
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
pub enum LogError {
    /// This node does not have the pod or the container.
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
