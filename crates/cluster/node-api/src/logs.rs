//! Logs of containers.

use std::{collections::BTreeMap, io};

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

/// The reason why a log cannot be read. Each variant has the message for the client.
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

/// An object that owns a pod, directly or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOwner {
    /// The API group and version, for example `batch/v1`.
    pub api_version: String,
    /// The kind, for example `Job`.
    pub kind: String,
    /// The name, in the namespace of the pod.
    pub name: String,
    /// The uid.
    pub uid: String,
}

/// The logs of a Job's pod, which a node keeps when the pod is deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodLogs {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The time at which the pod was created.
    pub created: Option<Timestamp>,
    /// The pod's labels.
    pub labels: BTreeMap<String, String>,
    /// The pod's annotations, except for annotations with long values.
    pub annotations: BTreeMap<String, String>,
    /// The Job that controls the pod.
    pub controller: LogOwner,
    /// The object whose removal also removes the logs: the Job, or its controller.
    pub owner: LogOwner,
    /// The time at which the node removed the pod; `None` while the pod exists.
    pub deleted: Option<Timestamp>,
    /// The reason why the logs no longer exist, if the node removed them before their owner was
    /// removed.
    pub removed: Option<String>,
    /// The containers that have started, in the order of their names.
    pub containers: Vec<ContainerLogs>,
}

/// The logs of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerLogs {
    /// The container's name.
    pub name: String,
    /// The instances of the container that have a log, oldest first.
    pub instances: Vec<InstanceLog>,
}

/// The log of one instance of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InstanceLog {
    /// The number of restarts before this instance.
    pub restart: u32,
    /// True if the beginning was removed because the log has reached its maximum size.
    pub is_cut: bool,
}

/// Provides the logs of containers.
pub trait NodeLogs: Send + Sync {
    /// Opens a log. Drop the stream to stop reading.
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>>;

    /// Opens a log of the pod with the request's namespace, name and uid, whose object no longer
    /// exists. A log that is still being written is followed to its end.
    fn open_deleted(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        let LogRequest { pod, uid, .. } = request;
        let text = format!("the logs of the deleted pod \"{pod}\" with the UID {uid} are not kept");
        Box::pin(std::future::ready(Err(LogError::NotFound(text))))
    }

    /// Lists the logs of the pods of Jobs in a namespace. `None` if no logs of deleted pods are
    /// kept.
    fn list(&self, _namespace: &str) -> BoxFuture<'static, Option<Vec<PodLogs>>> {
        Box::pin(std::future::ready(None))
    }
}
