//! Connections to webhooks: HTTP/1.1 over TLS, as from an API server. Idle ones
//! are kept for later calls.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::trust;

/// Number of idle connections that are kept for a webhook.
const MAX_IDLE: usize = 16;

/// How long an idle connection is kept, as in Go's HTTP client.
const IDLE_TIME: Duration = Duration::from_secs(90);

/// A connection that carries one request at a time.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    socket: SocketAddr,
}

/// The idle connections of a webhook.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<(Connection, Instant)>>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Takes a connection to one of the sockets. Closes those that are no
    /// longer usable.
    pub(super) fn take(&self, sockets: &[SocketAddr]) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(connection, since)| {
            since.elapsed() < IDLE_TIME
                && connection.sender.is_ready()
                && sockets.contains(&connection.socket)
        });
        idle.pop().map(|(connection, _)| connection)
    }

    /// Keeps a connection for later calls.
    pub(super) fn put(&self, connection: Connection) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !connection.sender.is_closed() {
            idle.push((connection, Instant::now()));
        }
    }
}

/// Connects to the first of the sockets that accepts.
pub(super) async fn open(
    sockets: &[SocketAddr],
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
) -> Result<Connection, String> {
    let mut problem = "no address".to_owned();
    for socket in sockets {
        match TcpStream::connect(socket).await {
            Ok(stream) => return handshake(*socket, stream, name, tls).await,
            Err(error) => problem = format!("dial tcp {socket}: connect: {}", cause(&error)),
        }
    }
    Err(problem)
}

async fn handshake(
    socket: SocketAddr,
    stream: TcpStream,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
) -> Result<Connection, String> {
    // A failure only delays small packets.
    let _ = stream.set_nodelay(true);
    let stream = TlsConnector::from(tls).connect(name, stream).await;
    let stream = stream.map_err(|error| trust::problem(&error))?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| problem(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended early");
        }
    });
    Ok(Connection { sender, socket })
}

/// The problem of a connection, as Go words it.
pub(super) fn problem(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".into();
    }
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(found) = source {
        if let Some(error) = found.downcast_ref::<std::io::Error>() {
            return cause(error);
        }
        source = found.source();
    }
    error.to_string()
}

/// The cause of an I/O error without its number.
fn cause(error: &std::io::Error) -> String {
    let text = match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused",
        std::io::ErrorKind::ConnectionReset => "connection reset by peer",
        std::io::ErrorKind::TimedOut => "connection timed out",
        std::io::ErrorKind::UnexpectedEof => "EOF",
        _ => return error.to_string(),
    };
    text.into()
}
