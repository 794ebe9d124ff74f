//! Connects the API server's exec, attach and port-forward sessions to the node's
//! containers. The API server starts before the node, so the connection is set
//! later.

use std::sync::{Arc, OnceLock};

use longshore_apiserver::{
    BoxedConnection, ContainerRef, NodeStreams, Opening, Session, StreamError, StreamsWanted,
};
use longshore_node::{SessionError, Sessions, Wanted};

/// Gives the API server access to the node's containers once the node has started.
#[derive(Clone, Default)]
pub(crate) struct StreamBridge {
    sessions: Arc<OnceLock<Sessions>>,
}

impl StreamBridge {
    /// Sets the node's sessions. Only the first call has an effect.
    pub(crate) fn fill(&self, sessions: Sessions) {
        let _ = self.sessions.set(sessions);
    }

    fn sessions(&self) -> Result<Sessions, StreamError> {
        let sessions = self.sessions.get().cloned();
        sessions
            .ok_or_else(|| StreamError::NotRunning("the embedded cluster runs no node".to_owned()))
    }
}

fn refusal(error: SessionError) -> StreamError {
    match error {
        SessionError::NotRunning(text) => StreamError::NotRunning(text),
        SessionError::Command { code, message } => StreamError::Command { code, message },
        error => StreamError::Failed(error.to_string()),
    }
}

fn wanted(wanted: StreamsWanted) -> Wanted {
    Wanted {
        input: wanted.input,
        output: wanted.output,
        errors: wanted.errors,
    }
}

fn session(session: longshore_node::Session) -> Session {
    Session {
        input: session.input,
        output: session.output,
        errors: session.errors,
        resize: session.resize,
        end: session.end,
    }
}

impl NodeStreams for StreamBridge {
    fn check(&self, container: &ContainerRef) -> Result<(), StreamError> {
        let sessions = self.sessions()?;
        let checked = sessions.check(&container.uid, &container.container);
        checked.map_err(refusal)
    }

    fn exec(
        &self,
        container: ContainerRef,
        command: Vec<String>,
        streams: StreamsWanted,
    ) -> Opening<Session> {
        let sessions = self.sessions();
        Box::pin(async move {
            let (uid, name) = (&container.uid, &container.container);
            let (sessions, wanted) = (sessions?, wanted(streams));
            let opening = sessions.exec(uid, name, &command, wanted, streams.terminal);
            opening.await.map(session).map_err(refusal)
        })
    }

    fn attach(&self, container: ContainerRef, streams: StreamsWanted) -> Opening<Session> {
        let sessions = self.sessions();
        Box::pin(async move {
            let (uid, name) = (&container.uid, &container.container);
            let opened = sessions?.attach(uid, name, wanted(streams));
            opened.map(session).map_err(refusal)
        })
    }

    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection> {
        let sessions = self.sessions();
        Box::pin(async move {
            let sessions = sessions?;
            let stream = sessions.connect(&pod.uid, port).await.map_err(refusal)?;
            Ok(Box::pin(stream) as BoxedConnection)
        })
    }
}
