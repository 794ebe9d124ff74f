//! Connections to webhooks: HTTP/1.1 over TLS, like an API server's. Idle connections are kept for
//! later calls.

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

use crate::remote::connect;

/// Number of idle connections that are kept for a webhook.
const MAX_IDLE: usize = 16;

/// Time that an idle connection is kept, the same as in Go's HTTP client.
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
    /// Takes an idle connection to any of the sockets. Closes idle connections that are no longer
    /// usable.
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
    let (socket, stream) = connect::open(sockets, name, tls).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| connect::problem(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook ended early");
        }
    });
    Ok(Connection { sender, socket })
}
