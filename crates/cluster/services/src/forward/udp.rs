//! Forwards the packets of a UDP port.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    net::UdpSocket,
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::{
    choose::Chooser,
    connections::{Permit, Share},
};
use crate::table::Target;

/// The time after a client's last packet during which its packets go to the same endpoint.
const IDLE: Duration = Duration::from_secs(60);
/// The maximum size of a packet, in bytes.
const PACKET: usize = 65_535;
/// The delay after the operating system refused to receive a packet.
const RECEIVE_DELAY: Duration = Duration::from_millis(100);

/// The packets of a client, and the replies to it.
struct Session {
    endpoint: SocketAddr,
    /// Connected to the endpoint.
    socket: UdpSocket,
    last: Mutex<Instant>,
    _permit: Permit,
}

/// Listens on an address.
pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Forwards each client's packets to an endpoint of `target`, and the replies to the
/// client, forever.
pub(super) async fn serve(socket: UdpSocket, target: watch::Receiver<Target>, connections: Share) {
    let socket = Arc::new(socket);
    let mut chooser = Chooser::default();
    let mut sessions: HashMap<SocketAddr, Arc<Session>> = HashMap::new();
    let mut replies = JoinSet::new();
    let mut packet = vec![0; PACKET];
    loop {
        let (length, client) = tokio::select! {
            received = socket.recv_from(&mut packet) => match received {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, "cannot receive a packet to a Service");
                    sleep(RECEIVE_DELAY).await;
                    continue;
                }
            },
            Some(ended) = replies.join_next(), if !replies.is_empty() => {
                if let Ok((client, ended)) = ended
                    && sessions.get(&client).is_some_and(|known| Arc::ptr_eq(known, &ended))
                {
                    sessions.remove(&client);
                }
                continue;
            }
        };
        let current = target.borrow().clone();
        let known = sessions
            .get(&client)
            .filter(|session| current.endpoints.contains(&session.endpoint));
        let session = match known {
            Some(session) => session.clone(),
            None => {
                let Some(session) = open(&mut chooser, &current, client, &connections).await else {
                    continue;
                };
                let session = Arc::new(session);
                sessions.insert(client, session.clone());
                replies.spawn(reply(socket.clone(), client, session.clone()));
                session
            }
        };
        *session.last.lock() = Instant::now();
        // UDP packets may be lost; the next packet goes to another endpoint.
        if session.socket.send(&packet[..length]).await.is_err() {
            sessions.remove(&client);
        }
    }
}

async fn open(
    chooser: &mut Chooser,
    target: &Target,
    client: SocketAddr,
    connections: &Share,
) -> Option<Session> {
    let permit = connections.try_permit()?;
    let now = Instant::now();
    let endpoint = *chooser.order(target, client.ip(), now).first()?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.ok()?;
    socket.connect(endpoint).await.ok()?;
    chooser.connected(target, client.ip(), endpoint, now);
    Some(Session {
        endpoint,
        socket,
        last: Mutex::new(now),
        _permit: permit,
    })
}

/// Sends the replies of an endpoint to the client, until none were exchanged for a while.
async fn reply(
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    session: Arc<Session>,
) -> (SocketAddr, Arc<Session>) {
    let mut packet = vec![0; PACKET];
    loop {
        let until = *session.last.lock() + IDLE;
        match timeout_at(until, session.socket.recv(&mut packet)).await {
            Ok(Ok(length)) => {
                *session.last.lock() = Instant::now();
                let _ = socket.send_to(&packet[..length], client).await;
            }
            Ok(Err(_)) => break,
            Err(_) if Instant::now() < *session.last.lock() + IDLE => {}
            Err(_) => break,
        }
    }
    (client, session)
}
