//! Sessions with containers: commands, the streams of the main process, and ports of pods.

use std::pin::Pin;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Measuring;

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerRef {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid, which distinguishes it from a later pod with the same
    /// name.
    pub uid: String,
    /// The container.
    pub container: String,
}

/// The streams of a container that a client requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamsWanted {
    /// Standard input.
    pub input: bool,
    /// Standard output.
    pub output: bool,
    /// Standard error; false if there is a terminal.
    pub errors: bool,
    /// A terminal.
    pub terminal: bool,
}

/// The reason why a session cannot be opened. Each variant has the message for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The container or the pod is not running.
    #[error("{0}")]
    NotRunning(String),
    /// The command cannot be started; `code` is the exit code that a shell
    /// would return.
    #[error("{message}")]
    Command {
        /// 126 or 127.
        code: i32,
        /// The reason.
        message: String,
    },
    /// The request is invalid, or the operation failed.
    #[error("{0}")]
    Failed(String),
}

/// The reader of a session.
pub type BoxedRead = Pin<Box<dyn AsyncRead + Send>>;
/// The writer of a session.
pub type BoxedWrite = Pin<Box<dyn AsyncWrite + Send>>;
/// A bidirectional connection.
pub type BoxedConnection = Pin<Box<dyn Duplex>>;

/// A stream that can be read and written.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A session with a container. Dropping it closes the standard input of an
/// executed command, which continues to run, or detaches from an attached
/// container.
pub struct Session {
    /// Standard input; drop it to close it.
    pub input: Option<BoxedWrite>,
    /// Standard output; with a terminal it includes standard error.
    pub output: Option<BoxedRead>,
    /// Standard error.
    pub errors: Option<BoxedRead>,
    /// Sets the number of columns and rows of the terminal, if there is one.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// Resolves to the exit code when the command ends. The outputs may end
    /// only while this future is polled.
    pub end: BoxFuture<'static, i32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// The result of opening a session.
pub type Opening<T> = BoxFuture<'static, Result<T, SessionError>>;

/// Opens sessions with containers.
pub trait NodeStreams: Send + Sync {
    /// Checks that the container is running.
    fn check(&self, container: &ContainerRef) -> Result<(), SessionError>;

    /// Runs a command in a container.
    fn exec(
        &self,
        container: ContainerRef,
        command: Vec<String>,
        wanted: StreamsWanted,
    ) -> Opening<Session>;

    /// Attaches to the main process of a container.
    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session>;

    /// Connects to a port of a pod; the `container` field is ignored.
    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection>;

    /// Measures the resource usage of the node and its containers. If no node supports this, the
    /// result is `None` and the API server does not serve `metrics.k8s.io`.
    fn measure(&self) -> Option<Measuring> {
        None
    }
}
