//! Forwards ports of the node to pods (`hostPort` of containers).

use std::{
    collections::{BTreeMap, btree_map::Entry},
    net::SocketAddr,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    forward::{Connections, Failed, Open},
    objects::Protocol,
    report::{self, HOST_PORT_REMEDIES},
    table::{Listener, Target},
};

/// A port of the node, and the port of a pod to which it is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardedPort {
    listener: Listener,
    endpoint: SocketAddr,
}

impl ForwardedPort {
    /// Returns a forwarded port; `None` if the protocol is neither TCP nor UDP.
    #[must_use]
    pub fn new(protocol: Option<&str>, address: SocketAddr, endpoint: SocketAddr) -> Option<Self> {
        let protocol = match Protocol::of(protocol) {
            Protocol::Other => return None,
            protocol => protocol,
        };
        let listener = Listener { protocol, address };
        Some(Self { listener, endpoint })
    }
}

/// A listener of a pod.
#[derive(Debug)]
struct Owned {
    pod: String,
    open: Open,
}

/// The ports of a node that are forwarded to its pods. Dropping it closes all connections.
#[derive(Debug, Default)]
pub struct HostPorts {
    open: Mutex<BTreeMap<Listener, Owned>>,
    connections: Arc<Connections>,
}

impl HostPorts {
    /// Forwards a port to the pod with this UID until [`HostPorts::close`] is called. A port that
    /// still belongs to another pod is then forwarded to this pod.
    ///
    /// # Errors
    /// The port cannot be opened. The message contains the reason and the remedy.
    pub fn open(&self, pod: &str, port: ForwardedPort) -> Result<(), String> {
        let ForwardedPort { listener, endpoint } = port;
        let target = Target {
            endpoints: [endpoint].into(),
            affinity: None,
        };
        let pod = pod.to_owned();
        match self.open.lock().entry(listener) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.open.set_target(target);
                known.pod = pod;
            }
            Entry::Vacant(vacant) => {
                let open = Open::new(listener, target, self.connections.share(&pod));
                let open = open.map_err(|error| {
                    report::message(&Failed { listener, error }, &HOST_PORT_REMEDIES)
                })?;
                vacant.insert(Owned { pod, open });
            }
        }
        Ok(())
    }

    /// Closes the listeners of a pod. Its ports are free when the future completes.
    pub async fn close(&self, pod: &str) {
        let closed: Vec<Owned> = {
            let mut open = self.open.lock();
            open.extract_if(.., |_, owned| owned.pod == pod)
                .map(|(_, owned)| owned)
                .collect()
        };
        for owned in closed {
            owned.open.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{Ipv4Addr, UdpSocket};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
    };

    use super::*;

    /// A server that sends a text to each client.
    async fn server(text: &'static str) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                client.write_all(text.as_bytes()).await.unwrap();
            }
        });
        address
    }

    async fn ask(address: SocketAddr) -> Option<String> {
        let mut text = String::new();
        let mut client = TcpStream::connect(address).await.ok()?;
        client.read_to_string(&mut text).await.ok()?;
        Some(text)
    }

    /// An address that is free at this moment.
    async fn free() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap()
    }

    #[tokio::test]
    async fn a_port_belongs_to_the_pod_that_opened_it_last() {
        let (ports, at) = (HostPorts::default(), free().await);
        let port = |to| ForwardedPort::new(None, at, to).unwrap();
        ports.open("a", port(server("a").await)).unwrap();
        assert_eq!(ask(at).await.as_deref(), Some("a"));
        ports.open("b", port(server("b").await)).unwrap();
        assert_eq!(ask(at).await.as_deref(), Some("b"));
        ports.close("a").await;
        assert_eq!(ask(at).await.as_deref(), Some("b"));
        ports.close("b").await;
        assert_eq!(ask(at).await, None);
        // The port is free immediately.
        TcpListener::bind(at).await.unwrap();
    }

    #[tokio::test]
    async fn a_port_that_is_in_use_is_refused_with_the_remedy() {
        let ports = HostPorts::default();
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = taken.local_addr().unwrap();
        let port = ForwardedPort::new(Some("UDP"), at, at).unwrap();
        let message = ports.open("a", port).unwrap_err();
        let expected = format!(
            "cannot forward UDP {at}: Address already in use (os error 98); another program uses \
             it: end the program, or change hostPort {}",
            at.port()
        );
        assert_eq!(message, expected);
        drop(taken);
        ports.open("a", port).unwrap();
        assert_eq!(ForwardedPort::new(Some("SCTP"), at, at), None);
    }
}
