//! Sessions with running containers: commands, attached streams, and
//! connections to pods' ports.

use std::{io, net::SocketAddr, sync::Weak, time::Duration};

use tokio::net::TcpStream;

use crate::{
    pod::Shared,
    streams::{self, MAX_EXEC_COMMANDS, Session, SessionError, Wanted},
};

/// Time limit for a connection to a pod's port.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens sessions with the containers of a running agent. Cheap to clone; does
/// not keep the agent alive.
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

    /// Checks that a container is running.
    ///
    /// # Errors
    /// [`SessionError::NotRunning`].
    pub fn check(&self, uid: &str, container: &str) -> Result<(), SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        shared
            .running_containers
            .container(uid, container)
            .map(drop)
    }

    /// Runs a command in a container's namespaces, with its environment,
    /// working directory and user. It runs until it or the container ends,
    /// regardless of the session.
    ///
    /// # Errors
    /// [`SessionError`]: the container is not running, or the command does not
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
        let container = shared.running_containers.container(uid, container)?;
        let room = shared.running_containers.commands().try_acquire_owned();
        let room = room.map_err(|_| {
            SessionError::Refused(format!(
                "{MAX_EXEC_COMMANDS} commands that were started by exec run already: end some of them"
            ))
        })?;
        streams::exec(&shared.spawner, &container, command, wanted, terminal, room).await
    }

    /// Attaches to the input and output of a container's main process from now
    /// on.
    ///
    /// # Errors
    /// [`SessionError`]: the container is not running.
    pub fn attach(
        &self,
        uid: &str,
        container: &str,
        wanted: Wanted,
    ) -> Result<Session, SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let container = shared.running_containers.container(uid, container)?;
        Ok(container.attachment.open(wanted))
    }

    /// Connects to a port of a pod.
    ///
    /// # Errors
    /// [`SessionError`]: the pod is not running, or the connection fails.
    pub async fn connect(&self, uid: &str, port: u16) -> Result<TcpStream, SessionError> {
        let shared = self.shared.upgrade().ok_or_else(stopping)?;
        let address = SocketAddr::from((shared.running_containers.address(uid)?, port));
        drop(shared);
        let failed = |error: &dyn std::fmt::Display| {
            SessionError::Refused(format!("failed to connect to {address}: {error}"))
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Forward data without delay.
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
