//! The API server's access to the node. The API server starts before the node, so
//! the node is set later.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use longshore_node::{LogReader, NodeAgent, Sessions};
use longshore_node_api::{
    BoxedConnection, ContainerRef, LogError, LogRequest, LogStream, Measuring, NodeLogs,
    NodeStreams, Opening, PodLogs, Session, SessionError, StreamsWanted,
};

const NO_NODE: &str = "the embedded cluster runs no node";

/// The logs and sessions of the node, after it has started.
#[derive(Clone, Default)]
pub(crate) struct NodeLink {
    node: Arc<OnceLock<(LogReader, Sessions)>>,
}

impl NodeLink {
    /// Sets the node. Only the first call has an effect.
    pub(crate) fn fill(&self, node: &NodeAgent) {
        let _ = self.node.set((node.logs(), node.sessions()));
    }

    fn sessions(&self) -> Result<&Sessions, SessionError> {
        let node = self.node.get().map(|(_, sessions)| sessions);
        node.ok_or_else(|| SessionError::NotRunning(NO_NODE.to_owned()))
    }

    /// Opens a session, or resolves to an error if no node is set.
    fn session<T: Send + 'static>(&self, open: impl FnOnce(&Sessions) -> Opening<T>) -> Opening<T> {
        match self.sessions() {
            Ok(sessions) => open(sessions),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl NodeLogs for NodeLink {
    fn open(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        match self.node.get() {
            Some((logs, _)) => logs.open(request),
            None => Box::pin(std::future::ready(Err(LogError::Failed(
                NO_NODE.to_owned(),
            )))),
        }
    }

    fn open_deleted(&self, request: LogRequest) -> BoxFuture<'static, Result<LogStream, LogError>> {
        match self.node.get() {
            Some((logs, _)) => logs.open_deleted(request),
            None => Box::pin(std::future::ready(Err(LogError::NotFound(
                NO_NODE.to_owned(),
            )))),
        }
    }

    fn list(&self, namespace: &str) -> BoxFuture<'static, Option<Vec<PodLogs>>> {
        match self.node.get() {
            Some((logs, _)) => logs.list(namespace),
            None => Box::pin(std::future::ready(None)),
        }
    }
}

impl NodeStreams for NodeLink {
    fn check(&self, container: &ContainerRef) -> Result<(), SessionError> {
        self.sessions()?.check(container)
    }

    fn exec(
        &self,
        container: ContainerRef,
        command: Vec<String>,
        wanted: StreamsWanted,
    ) -> Opening<Session> {
        self.session(|sessions| sessions.exec(container, command, wanted))
    }

    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        self.session(|sessions| sessions.attach(container, wanted))
    }

    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection> {
        self.session(|sessions| sessions.connect(pod, port))
    }

    fn measure(&self) -> Option<Measuring> {
        let (_, sessions) = self.node.get()?;
        sessions.measure()
    }
}
