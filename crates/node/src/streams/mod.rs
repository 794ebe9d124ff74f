//! Streams of running containers: of commands that run inside them, and their
//! own.

mod attach;
mod exec;
mod running;

use std::pin::Pin;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use attach::Attachment;
pub(crate) use exec::exec;
pub(crate) use running::{Container, RunningContainers};

/// Maximum number of concurrent exec commands, including those whose clients
/// disconnected.
pub(crate) const MAX_EXEC_COMMANDS: usize = 2000;

/// The writer of a session's input.
pub type SessionInput = Pin<Box<dyn AsyncWrite + Send>>;
/// The reader of a session's output.
pub type SessionOutput = Pin<Box<dyn AsyncRead + Send>>;

/// The requested streams of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Standard input.
    pub input: bool,
    /// Standard output.
    pub output: bool,
    /// Standard error.
    pub errors: bool,
}

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such running container.
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
    /// The request is invalid, for example because the container has no such
    /// stream.
    #[error("{0}")]
    Refused(String),
    /// A system call failed.
    #[error("{0}")]
    Failed(String),
}

/// A session. Dropping it closes the standard input of an executed command,
/// which continues to run, or detaches from an attached container.
pub struct Session {
    /// Standard input; drop it to close it.
    pub input: Option<SessionInput>,
    /// Standard output; with a terminal it includes standard error.
    pub output: Option<SessionOutput>,
    /// Standard error.
    pub errors: Option<SessionOutput>,
    /// Sets the number of columns and rows of the terminal, if there is one.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// Resolves to the exit code when the command ends. The outputs end only
    /// while this future is polled.
    pub end: BoxFuture<'static, i32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
