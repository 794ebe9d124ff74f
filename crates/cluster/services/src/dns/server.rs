//! Receives queries and sends replies.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::base::iana::OptRcode;
use futures::future::BoxFuture;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    time::{sleep, timeout},
};

use super::{
    foreign::claims_zone,
    forward::Forwarder,
    newest::Newest,
    reply::{Step, Transport, decide},
    sockets::DnsSockets,
    zone::{PodNames, Zone},
};
use crate::Shared;

/// The maximum size of a query in bytes.
const LARGEST_QUERY: usize = 4096;
/// The maximum number of connections.
const MAX_CONNECTIONS: usize = 64;
/// The maximum number of UDP queries that wait for other servers.
const MAX_WAITING: usize = 256;
/// The maximum time for which a connection may be idle, and for sending a reply.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay after the operating system refused to receive.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// A DNS server.
#[derive(Clone)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    pods: Arc<dyn PodNames>,
    address: Ipv4Addr,
    forwarder: Arc<Forwarder>,
    turn: Arc<AtomicUsize>,
}

/// The reply to a query.
enum Handled {
    Now(Option<Vec<u8>>),
    Later(BoxFuture<'static, Vec<u8>>),
}

impl Server {
    /// Makes a server at `address` that asks the name servers of the file `config`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        pods: Arc<dyn PodNames>,
        address: Ipv4Addr,
        config: &Path,
    ) -> Self {
        let forwarder = Forwarder::new(config.to_owned(), IpAddr::V4(address));
        Self {
            shared,
            pods,
            address,
            forwarder,
            turn: Arc::default(),
        }
    }

    /// Answers queries, forever.
    pub(crate) async fn serve(self, sockets: DnsSockets) {
        // A name may exist although it is unknown until all Services have been read. Queries wait
        // in the sockets until then.
        let _ = self.shared.ready.subscribe().wait_for(|ready| *ready).await;
        let DnsSockets { udp, tcp, .. } = sockets;
        tokio::join!(self.serve_udp(Arc::new(udp)), self.serve_tcp(&tcp));
    }

    fn handle(&self, query: &[u8], transport: Transport) -> Handled {
        // An internal error costs one query, not the server.
        let decided = catch_unwind(AssertUnwindSafe(|| {
            let table = self.shared.table.lock();
            let zone = Zone {
                table: &table,
                pods: &*self.pods,
                server: self.address,
                // The lower half, which wraps around.
                serial: *self.shared.names.borrow() as u32,
                turn: self.turn.fetch_add(1, Ordering::Relaxed),
            };
            decide(query, transport, &zone)
        }));
        let Ok(step) = decided else {
            tracing::error!("the DNS server panicked; a query gets no reply");
            return Handled::Now(None);
        };
        let forwarder = self.forwarder.clone();
        match step {
            Step::Ignore => Handled::Now(None),
            Step::Reply(reply) => Handled::Now(Some(reply)),
            Step::Forward(query) => Handled::Later(Box::pin(async move {
                let reply = forwarder.ask(query.as_bytes(), query.transport()).await;
                let is_usable =
                    |reply: &Vec<u8>| reply.len() <= query.limit() && !claims_zone(reply);
                let reply = reply.filter(is_usable);
                reply.unwrap_or_else(|| query.refused(OptRcode::SERVFAIL))
            })),
            Step::Follow(query, aliases, target) => Handled::Later(Box::pin(async move {
                let answer = match query.of(&target) {
                    Some(of_target) => forwarder.ask(&of_target, Transport::Udp).await,
                    None => None,
                };
                query.followed(aliases, &target, answer.as_deref())
            })),
        }
    }

    async fn serve_udp(&self, socket: Arc<UdpSocket>) {
        // A client whose query is given up asks again.
        let mut waiting = Newest::new(MAX_WAITING);
        let mut packet = vec![0; LARGEST_QUERY];
        loop {
            let (length, client) = match socket.recv_from(&mut packet).await {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, "cannot receive a DNS query");
                    sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            match self.handle(&packet[..length], Transport::Udp) {
                Handled::Now(None) => {}
                Handled::Now(Some(reply)) => send(&socket, &reply, client).await,
                Handled::Later(reply) => {
                    let socket = socket.clone();
                    waiting.spawn(async move { send(&socket, &reply.await, client).await });
                }
            }
        }
    }

    async fn serve_tcp(&self, listener: &TcpListener) {
        // A client whose connection is closed asks again.
        let mut open = Newest::new(MAX_CONNECTIONS);
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of a DNS client");
                    sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            let server = self.clone();
            open.spawn(async move {
                if let Err(error) = server.serve_connection(stream).await {
                    tracing::trace!(%error, "the connection of a DNS client ended");
                }
            });
        }
    }

    async fn serve_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let query = timeout(IDLE_TIMEOUT, read(&mut stream)).await??;
            let reply = match self.handle(&query, Transport::Tcp) {
                Handled::Now(None) => return Ok(()),
                Handled::Now(Some(reply)) => reply,
                Handled::Later(reply) => reply.await,
            };
            let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
            let framed = [&length.to_be_bytes()[..], &reply].concat();
            timeout(IDLE_TIMEOUT, stream.write_all(&framed)).await??;
        }
    }
}

async fn send(socket: &UdpSocket, reply: &[u8], client: SocketAddr) {
    if let Err(error) = socket.send_to(reply, client).await {
        tracing::debug!(%client, %error, "cannot send a DNS reply");
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16().await?);
    if length > LARGEST_QUERY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut query = vec![0; length];
    stream.read_exact(&mut query).await?;
    Ok(query)
}
