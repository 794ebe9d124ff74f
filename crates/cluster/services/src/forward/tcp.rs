//! Forwards the connections of a TCP port.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::copy_bidirectional_with_sizes,
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{choose::Chooser, connections::Share};
use crate::table::Target;

/// The length of the queue of connections that are not accepted yet.
const BACKLOG: u32 = 1024;
/// The maximum time until an endpoint accepts a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The delay after the operating system refused to accept a connection.
const ACCEPT_DELAY: Duration = Duration::from_millis(100);
/// The size of the buffer of each direction of a connection, in bytes.
const BUFFER: usize = 32 * 1024;

/// Listens on an address.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A connection that has just ended must not prevent the next listener.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections and forwards each to an endpoint of `target`, forever.
pub(super) async fn serve(
    listener: TcpListener,
    target: watch::Receiver<Target>,
    connections: Share,
) {
    let chooser = Arc::new(Mutex::new(Chooser::default()));
    loop {
        let (client, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection to a Service");
                sleep(ACCEPT_DELAY).await;
                continue;
            }
        };
        let Some(permit) = connections.permit().await else {
            return;
        };
        let target = target.borrow().clone();
        let chooser = chooser.clone();
        connections.serve(async move {
            forward(client, peer.ip(), &target, &chooser).await;
            drop(permit);
        });
    }
}

async fn forward(mut client: TcpStream, peer: IpAddr, target: &Target, chooser: &Mutex<Chooser>) {
    let order = chooser.lock().order(target, peer, Instant::now());
    for endpoint in order {
        let mut server = match timeout(CONNECT_TIMEOUT, connect(peer, endpoint)).await {
            Ok(Ok(server)) => server,
            Ok(Err(error)) => {
                tracing::debug!(%endpoint, %error, "an endpoint of a Service refused a connection");
                continue;
            }
            Err(_) => continue,
        };
        chooser
            .lock()
            .connected(target, peer, endpoint, Instant::now());
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let _ = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
        return;
    }
    // The client gets a reset, as if the connection had been refused.
    let _ = client.set_zero_linger();
}

/// Connects to an endpoint, from the client's own address if it is a pod's, so that the
/// endpoint sees it.
async fn connect(peer: IpAddr, endpoint: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if peer.is_loopback() && peer != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        socket.bind(SocketAddr::new(peer, 0))?;
    }
    socket.connect(endpoint).await
}
