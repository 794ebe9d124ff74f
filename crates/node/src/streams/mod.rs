//! Streams of running containers: of commands that are run inside them, and their
//! own.

mod attach;
mod exec;
mod live;

use std::pin::Pin;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use attach::Attachment;
pub(crate) use exec::exec;
pub(crate) use live::{Container, Live};

/// How many commands started by exec may run at a time, those among them whose
/// clients have left.
pub(crate) const COMMANDS: usize = 2000;

/// What a session writes to.
pub type SessionInput = Pin<Box<dyn AsyncWrite + Send>>;
/// What a session reads from.
pub type SessionOutput = Pin<Box<dyn AsyncRead + Send>>;

/// Which streams of a session are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Standard input.
    pub input: bool,
    /// Standard output.
    pub output: bool,
    /// Standard error.
    pub errors: bool,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No such container runs here.
    #[error("{0}")]
    NotRunning(String),
    /// The command cannot be started; `code` is what a shell would end with.
    #[error("{message}")]
    Command {
        /// 126 or 127.
        code: i32,
        /// Why not.
        message: String,
    },
    /// The container has no such stream, or the like.
    #[error("{0}")]
    Refused(String),
    /// The system does not allow it.
    #[error("{0}")]
    Failed(String),
}

/// A session. Dropping it closes the standard input of a command that was run,
/// which goes on, and lets go of a container that was attached to.
pub struct Session {
    /// Standard input; dropping it closes it.
    pub input: Option<SessionInput>,
    /// Standard output; with a terminal standard error as well.
    pub output: Option<SessionOutput>,
    /// Standard error.
    pub errors: Option<SessionOutput>,
    /// Sets the columns and rows of the terminal, if there is one.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// The end, with the exit code. The outputs end only while it is polled.
    pub end: BoxFuture<'static, i32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
