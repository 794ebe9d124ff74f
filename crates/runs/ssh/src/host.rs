//! The interface to sessions and forwarded connections.

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Request;

/// An output of a session.
pub type BoxRead = Box<dyn AsyncRead + Send + Unpin>;
/// The input of a session.
pub type BoxWrite = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection to a port.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The reason for the refusal of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Such connections are never allowed.
    Prohibited(String),
    /// The connection failed.
    Failed(String),
}

/// The end of a session: its exit code, or the reason why there is none.
pub type Exit = Result<i32, String>;

/// A running session.
pub struct Started {
    /// The standard input.
    pub input: BoxWrite,
    /// The standard output.
    pub output: BoxRead,
    /// The standard error, unless the session has a terminal.
    pub errors: Option<BoxRead>,
    /// Controls the session while it runs.
    pub control: Box<dyn Control>,
    /// Completes when the session ends.
    pub exit: BoxFuture<'static, Exit>,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}

/// Controls a session. Errors are ignored, because they mean that the session has ended.
pub trait Control: Send + Sync {
    /// Sets the size of the terminal, in columns and rows.
    fn resize(&self, columns: u16, rows: u16) -> BoxFuture<'static, ()>;

    /// Sends a signal to the processes of the session. The name has no `SIG`, as in `TERM`.
    fn signal(&self, name: String) -> BoxFuture<'static, ()>;
}

/// Executes sessions, and makes connections.
pub trait Host: Send + Sync + 'static {
    /// Starts a session. An error is a message for the user.
    fn start(&self, request: Request) -> BoxFuture<'_, Result<Started, String>>;

    /// Connects to a port, for a forward of the client.
    ///
    /// # Errors
    /// The reason for the refusal. The client shows it.
    fn connect(&self, host: String, port: u16) -> BoxFuture<'_, Result<Box<dyn Stream>, Refusal>>;

    /// Reports a refused request, if the protocol has no message for the refusal.
    fn note(&self, text: &str);
}
