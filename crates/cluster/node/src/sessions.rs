//! Sessions with running containers: commands, attached streams, and
//! connections to pods' ports.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use longshore_node_api::{
    BoxedConnection, ContainerRef, Measuring, NodeStreams, NodeUsage, Opening, Session,
    SessionError, StreamsWanted,
};
use tokio::net::TcpStream;

use crate::{pod::Shared, streams};

/// Time limit for a connection to a pod's port.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens sessions with the containers of a running agent. Cheap to clone; does not keep the agent
/// alive.
#[derive(Clone)]
pub struct Sessions {
    /// The shared state of one of the nodes. It contains the running containers of all nodes.
    shared: Weak<Shared>,
    /// The names of the nodes.
    nodes: Arc<[String]>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(shared: Weak<Shared>, nodes: Vec<String>) -> Self {
        let nodes = nodes.into();
        Self { shared, nodes }
    }

    fn shared(&self) -> Result<Arc<Shared>, SessionError> {
        self.shared.upgrade().ok_or_else(stopping)
    }

    /// Runs a command in a container's namespaces, with its environment, working directory and
    /// user. The command runs until it or the container ends, regardless of the session.
    async fn run(
        self,
        container: &ContainerRef,
        command: &[String],
        wanted: StreamsWanted,
    ) -> Result<Session, SessionError> {
        let shared = self.shared()?;
        let running = &shared.running_containers;
        let container = running.container(&container.uid, &container.container)?;
        let permit = running.count_command().map_err(|max| {
            SessionError::Failed(format!(
                "{max} commands that were started by exec run already: end some of them"
            ))
        })?;
        streams::exec(&shared.spawner, &container, command, wanted, permit).await
    }

    async fn connect_to(self, uid: &str, port: u16) -> Result<TcpStream, SessionError> {
        let shared = self.shared()?;
        let address = SocketAddr::from((shared.running_containers.address(uid)?, port));
        drop(shared);
        let failed = |error: &dyn std::fmt::Display| {
            SessionError::Failed(format!("failed to connect to {address}: {error}"))
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
                    "connect: connection refused: nothing listens there; the pod's servers must \
                     listen on $POD_IP ({own}) or on all addresses (0.0.0.0)"
                )))
            }
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&"i/o timeout")),
        }
    }
}

impl NodeStreams for Sessions {
    fn check(&self, container: &ContainerRef) -> Result<(), SessionError> {
        let shared = self.shared()?;
        let running = &shared.running_containers;
        running
            .container(&container.uid, &container.container)
            .map(drop)
    }

    fn exec(
        &self,
        container: ContainerRef,
        command: Vec<String>,
        wanted: StreamsWanted,
    ) -> Opening<Session> {
        let sessions = self.clone();
        Box::pin(async move { sessions.run(&container, &command, wanted).await })
    }

    /// Attaches to the input and output of a container's main process from now
    /// on.
    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        let sessions = self.clone();
        Box::pin(async move {
            let shared = sessions.shared()?;
            let running = &shared.running_containers;
            let container = running.container(&container.uid, &container.container)?;
            Ok(container.attachment.open(wanted))
        })
    }

    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection> {
        let sessions = self.clone();
        Box::pin(async move {
            let stream = sessions.connect_to(&pod.uid, port).await?;
            Ok(Box::pin(stream) as BoxedConnection)
        })
    }

    fn measure(&self) -> Option<Measuring> {
        let sessions = self.clone();
        Some(Box::pin(async move {
            let shared = sessions.shared.upgrade()?;
            let containers = shared.running_containers.process_ids();
            let usage = shared
                .usage
                .measure(sessions.nodes.to_vec(), containers)
                .await?;
            Some(NodeUsage {
                at: shared.clock.now(),
                ..usage
            })
        }))
    }
}

fn stopping() -> SessionError {
    SessionError::NotRunning("the node is stopping".to_owned())
}
