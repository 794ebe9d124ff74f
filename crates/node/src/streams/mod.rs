//! Sessions with running containers: commands run inside them, their own
//! streams, and connections to their pod's ports.

mod attach;
mod exec;
mod live;

use std::{io, net::SocketAddr, pin::Pin, sync::Weak, time::Duration};

use futures::future::BoxFuture;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

pub(crate) use attach::Attachment;
pub(crate) use live::{Container, Live};

use crate::pod::Shared;

/// How long a connection to a pod's port may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How many commands started by exec may run at a time, those among them whose
/// clients have left.
const COMMANDS: usize = 2000;

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
    /// The terminal, if there is one: told its columns and rows.
    pub resize: Option<Box<dyn Fn(u16, u16) + Send + Sync>>,
    /// The end, with the exit code. The outputs end only while it is polled.
    pub end: BoxFuture<'static, i32>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Opens sessions with the containers of a running agent. Cheap to clone; does
/// not keep the agent.
#[derive(Clone)]
pub struct Sessions {
    shared: Weak<Shared>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(shared: Weak<Shared>) -> Self {
        Self { shared }
    }

    /// Whether a container runs.
    ///
    /// # Errors
    /// [`SessionError::NotRunning`].
    pub fn check(&self, uid: &str, container: &str) -> Result<(), SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        shared.live.container(uid, container).map(drop)
    }

    /// Runs a command in a container's namespaces, with its environment,
    /// working folder and user. It runs until it ends or the container does,
    /// whatever becomes of the session.
    ///
    /// # Errors
    /// [`SessionError`]: the container does not run, or the command does not
    /// start.
    pub async fn exec(
        &self,
        uid: &str,
        container: &str,
        command: &[String],
        wanted: Wanted,
        terminal: bool,
    ) -> Result<Session, SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let container = shared.live.container(uid, container)?;
        let room = shared.live.commands().try_acquire_owned();
        let room = room.map_err(|_| {
            SessionError::Refused(format!(
                "{COMMANDS} commands that were started by exec run already: end some of them"
            ))
        })?;
        exec::exec(&shared.spawner, &container, command, wanted, terminal, room).await
    }

    /// Attaches to what a container's command reads and writes from now on.
    ///
    /// # Errors
    /// [`SessionError`]: the container does not run.
    pub fn attach(
        &self,
        uid: &str,
        container: &str,
        wanted: Wanted,
    ) -> Result<Session, SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let container = shared.live.container(uid, container)?;
        Ok(container.attachment.open(wanted))
    }

    /// Connects to a port of a pod.
    ///
    /// # Errors
    /// [`SessionError`]: the pod does not run, or nothing answers there.
    pub async fn connect(&self, uid: &str, port: u16) -> Result<TcpStream, SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let address = SocketAddr::from((shared.live.address(uid)?, port));
        drop(shared);
        let failed = |error: &dyn std::fmt::Display| {
            SessionError::Refused(format!("failed to connect to {address}: {error}"))
        };
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // What comes is passed on at once.
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let own = address.ip();
                Err(failed(&format_args!(
                    "connect: connection refused: nothing listens there; pods share this \
                     machine's network, so a server must listen on its pod's own address \
                     ($POD_IP, {own}) or on all addresses (0.0.0.0), not on 127.0.0.1"
                )))
            }
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&"i/o timeout")),
        }
    }
}

fn stopping() -> SessionError {
    SessionError::NotRunning("the node is stopping".to_owned())
}
