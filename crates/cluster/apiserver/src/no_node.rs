//! Servers without nodes.

use futures::future::BoxFuture;
use longshore_node_api::{
    BoxedConnection, ContainerRef, LogError, LogRequest, LogStream, NodeLogs, NodeStreams, Opening,
    Session, SessionError, StreamsWanted,
};

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

/// An implementation without containers, for servers without nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStreams;

fn not_running(pod: &ContainerRef) -> SessionError {
    SessionError::NotRunning(format!("no node runs pod {:?}", pod.pod))
}

impl NodeStreams for NoStreams {
    fn check(&self, container: &ContainerRef) -> Result<(), SessionError> {
        Err(not_running(container))
    }

    fn exec(&self, container: ContainerRef, _: Vec<String>, _: StreamsWanted) -> Opening<Session> {
        Box::pin(async move { Err(not_running(&container)) })
    }

    fn attach(&self, container: ContainerRef, _: StreamsWanted) -> Opening<Session> {
        Box::pin(async move { Err(not_running(&container)) })
    }

    fn connect(&self, pod: ContainerRef, _: u16) -> Opening<BoxedConnection> {
        Box::pin(async move { Err(not_running(&pod)) })
    }
}
