//! Asks the machine's name servers.

use std::{
    collections::HashMap,
    fs,
    hash::{BuildHasher as _, RandomState},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use domain::base::Message;
use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UdpSocket},
    sync::oneshot,
    time::timeout,
};

use super::{reply::Transport, resolver_config::ResolverConfig};

/// The maximum number of queries that wait for other servers.
const MAX_QUERIES: usize = 128;
/// The maximum number of servers that are asked, as in the resolver of the C library.
const MAX_SERVERS: usize = 3;
/// The maximum time until a server replies; clients wait 5 s.
const SERVER_TIMEOUT: Duration = Duration::from_millis(1500);
/// The maximum number of packets that are not the reply. More packets suggest an attempt to guess
/// the identifier, so the query is sent again over TCP, where only the server can reply.
const MAX_WRONG_REPLIES: usize = 16;
/// The port of name servers.
const PORT: u16 = 53;
/// The size of the identifier at the start of a message, in bytes.
const ID: usize = 2;
/// The maximum size of a message in bytes.
const LARGEST: usize = 65_535;

type Key = (Transport, Bytes);
type Reply = Shared<BoxFuture<'static, Option<Bytes>>>;

/// Asks the name servers in the machine's `resolv.conf`.
pub(super) struct Forwarder {
    /// The file, which is read for each query: laptops change networks.
    config: PathBuf,
    /// The server itself, which is never asked.
    own: IpAddr,
    /// The port of the servers.
    port: u16,
    /// The maximum time until a server replies.
    server_timeout: Duration,
    /// Queries that wait for a reply. Equal queries are sent once, so that a server that forwards
    /// queries to this server causes no loop.
    waiting: Mutex<HashMap<Key, Waiting>>,
    asked: AtomicU64,
}

impl Forwarder {
    pub(super) fn new(config: PathBuf, own: IpAddr) -> Arc<Self> {
        Arc::new(Self {
            config,
            own,
            port: PORT,
            server_timeout: SERVER_TIMEOUT,
            waiting: Mutex::default(),
            asked: AtomicU64::default(),
        })
    }

    /// Returns the reply to a query, or `None` if no server replies or if the query was dropped
    /// because too many newer queries wait.
    pub(super) async fn ask(
        self: &Arc<Self>,
        query: &[u8],
        transport: Transport,
    ) -> Option<Vec<u8>> {
        let (id, rest) = query.split_at_checked(ID)?;
        let reply = self.reply(transport, Bytes::copy_from_slice(rest)).await?;
        let mut reply = reply.to_vec();
        reply.get_mut(..ID)?.copy_from_slice(id);
        Some(reply)
    }

    /// Returns the future reply to a query, which equal queries share.
    fn reply(self: &Arc<Self>, transport: Transport, rest: Bytes) -> Reply {
        let key = (transport, rest);
        let mut waiting = self.waiting.lock();
        if let Some(known) = waiting.get(&key) {
            return known.reply.clone();
        }
        let oldest = waiting.iter().min_by_key(|(_, known)| known.number);
        let oldest = oldest.map(|(key, _)| key.clone());
        let oldest = oldest.filter(|_| waiting.len() >= MAX_QUERIES);
        // Dropped after the map is unlocked, because dropping the query locks the map.
        let _given_up = oldest.and_then(|oldest| waiting.remove(&oldest));
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (end, ended) = oneshot::channel();
        let (servers, query) = (self.servers(), with_random_id(&key.1));
        let limit = self.server_timeout;
        let done = Done(Arc::downgrade(self), key.clone(), number);
        let reply = async move {
            let reply = tokio::select! {
                reply = exchange_any(&servers, &query, transport, limit) => reply,
                _ = ended => None,
            };
            drop(done);
            reply.map(Bytes::from)
        };
        let reply = reply.boxed().shared();
        let query = Waiting {
            number,
            reply: reply.clone(),
            _end: end,
        };
        waiting.insert(key, query);
        drop(waiting);
        reply
    }

    fn servers(&self) -> Vec<SocketAddr> {
        let mut servers: Vec<SocketAddr> = ResolverConfig::read(&self.config)
            .nameservers
            .iter()
            .filter_map(|text| server(text, self.port))
            .collect();
        if servers.is_empty() {
            servers.push((Ipv4Addr::LOCALHOST, self.port).into());
        }
        servers.retain(|server| server.ip() != self.own);
        servers.truncate(MAX_SERVERS);
        servers
    }
}

/// Reads the address of a server. A link-local address can include the network interface.
fn server(text: &str, port: u16) -> Option<SocketAddr> {
    let Some((address, interface)) = text.split_once('%') else {
        return Some(SocketAddr::new(text.parse().ok()?, port));
    };
    let index = interface.parse().ok().or_else(|| {
        let is_name = !interface.contains('/') && !matches!(interface, "" | "." | "..");
        let path = is_name.then(|| format!("/sys/class/net/{interface}/ifindex"))?;
        fs::read_to_string(path).ok()?.trim().parse().ok()
    })?;
    let address = SocketAddrV6::new(address.parse().ok()?, port, 0, index);
    Some(SocketAddr::V6(address))
}

/// A query that waits for a reply.
struct Waiting {
    number: u64,
    reply: Reply,
    /// Ends the query when it is dropped.
    _end: oneshot::Sender<()>,
}

/// Removes a query when it is dropped.
struct Done(Weak<Forwarder>, Key, u64);

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(forwarder) = self.0.upgrade() {
            let mut waiting = forwarder.waiting.lock();
            // An equal query may have been asked after this one was given up.
            if waiting
                .get(&self.1)
                .is_some_and(|known| known.number == self.2)
            {
                waiting.remove(&self.1);
            }
        }
    }
}

fn with_random_id(rest: &[u8]) -> Vec<u8> {
    // The keys of a new hasher are random.
    let [first, second, ..] = RandomState::new().hash_one(rest).to_ne_bytes();
    [&[first, second], rest].concat()
}

async fn exchange_any(
    servers: &[SocketAddr],
    query: &[u8],
    transport: Transport,
    limit: Duration,
) -> Option<Vec<u8>> {
    for server in servers {
        let exchange = async {
            match transport {
                Transport::Udp => match exchange_udp(*server, query).await? {
                    Some(reply) => Ok(reply),
                    None => {
                        tracing::warn!(%server, "wrong DNS replies arrive; the query is asked over TCP");
                        exchange_tcp(*server, query).await
                    }
                },
                Transport::Tcp => exchange_tcp(*server, query).await,
            }
        };
        match timeout(limit, exchange).await {
            Ok(Ok(reply)) => return Some(reply),
            Ok(Err(error)) => tracing::debug!(%server, %error, "a name server cannot be asked"),
            Err(_) => tracing::debug!(%server, "a name server does not reply"),
        }
    }
    None
}

/// Returns true if `reply` is the reply to `query`.
fn is_reply(reply: &[u8], query: &[u8]) -> bool {
    match (Message::from_octets(reply), Message::from_octets(query)) {
        (Ok(reply), Ok(query)) => reply.is_answer(&query),
        _ => false,
    }
}

/// Returns the reply; `None` after too many packets that are not the reply.
async fn exchange_udp(server: SocketAddr, query: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut packet = vec![0; LARGEST];
    for _ in 0..=MAX_WRONG_REPLIES {
        let length = socket.recv(&mut packet).await?;
        if is_reply(&packet[..length], query) {
            packet.truncate(length);
            packet.shrink_to_fit();
            return Ok(Some(packet));
        }
    }
    Ok(None)
}

async fn exchange_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(server).await?;
    let framed = [&length.to_be_bytes()[..], query].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut reply = vec![0; usize::from(length)];
    stream.read_exact(&mut reply).await?;
    match is_reply(&reply, query) {
        true => Ok(reply),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests;
