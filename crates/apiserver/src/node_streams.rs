//! The interface through which the server reaches containers: commands run in
//! them, their own streams, and their pods' ports. The caller that runs the
//! containers implements [`NodeStreams`].

use std::pin::Pin;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRef {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid: a later pod of the same name is another one.
    pub uid: String,
    /// The container.
    pub container: String,
}

/// Which streams of a container are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamsWanted {
    /// Standard input.
    pub input: bool,
    /// Standard output.
    pub output: bool,
    /// Standard error; with a terminal there is none.
    pub errors: bool,
    /// A terminal.
    pub terminal: bool,
}

/// Why a container cannot be reached. Each carries the message for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It does not run.
    #[error("{0}")]
    NotRunning(String),
    /// The command does not start; `code` is what a shell would end with.
    #[error("{message}")]
    Command {
        /// 126 or 127.
        code: i32,
        /// Why not.
        message: String,
    },
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What a session reads from.
pub type BoxedRead = Pin<Box<dyn AsyncRead + Send>>;
/// What a session writes to.
pub type BoxedWrite = Pin<Box<dyn AsyncWrite + Send>>;
/// Both ways of a connection.
pub type BoxedConnection = Pin<Box<dyn Duplex>>;

/// Reads and writes.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A session with a container. Dropping it closes the standard input of a
/// command that was run, which goes on.
pub struct Session {
    /// Standard input; dropping it closes it.
    pub input: Option<BoxedWrite>,
    /// Standard output.
    pub output: Option<BoxedRead>,
    /// Standard error.
    pub errors: Option<BoxedRead>,
    /// Sets the columns and rows of the terminal, if there is one.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// The end, with the exit code. The outputs may end only while it is
    /// polled.
    pub end: BoxFuture<'static, i32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// What comes of asking for something of a container.
pub type Opening<T> = BoxFuture<'static, Result<T, StreamError>>;

/// Reaches containers.
pub trait NodeStreams: Send + Sync {
    /// Whether the container runs.
    fn check(&self, container: &ContainerRef) -> Result<(), StreamError>;

    /// Runs a command in a container.
    fn exec(
        &self,
        container: ContainerRef,
        command: Vec<String>,
        wanted: StreamsWanted,
    ) -> Opening<Session>;

    /// Attaches to the command that a container runs.
    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session>;

    /// Connects to a port of a pod; `container` says nothing.
    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection>;
}

/// No node, no containers: for servers on which nothing runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStreams;

impl NoStreams {
    fn refusal(pod: &ContainerRef) -> StreamError {
        StreamError::NotRunning(format!("no node runs pod {:?}", pod.pod))
    }
}

impl NodeStreams for NoStreams {
    fn check(&self, container: &ContainerRef) -> Result<(), StreamError> {
        Err(Self::refusal(container))
    }

    fn exec(&self, container: ContainerRef, _: Vec<String>, _: StreamsWanted) -> Opening<Session> {
        Box::pin(async move { Err(Self::refusal(&container)) })
    }

    fn attach(&self, container: ContainerRef, _: StreamsWanted) -> Opening<Session> {
        Box::pin(async move { Err(Self::refusal(&container)) })
    }

    fn connect(&self, pod: ContainerRef, _: u16) -> Opening<BoxedConnection> {
        Box::pin(async move { Err(Self::refusal(&pod)) })
    }
}
