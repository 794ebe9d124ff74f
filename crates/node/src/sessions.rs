//! Sessions with running containers: commands run inside them, their own
//! streams, and connections to their pod's ports.

use std::{io, net::SocketAddr, sync::Weak, time::Duration};

use tokio::net::TcpStream;

use crate::{
    pod::Shared,
    streams::{self, COMMANDS, Session, SessionError, Wanted},
};

/// How long a connection to a pod's port may take.
const CONNECT: Duration = Duration::from_secs(10);

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
        streams::exec(&shared.spawner, &container, command, wanted, terminal, room).await
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
