//! Opens TLS connections to the first socket that accepts.

use std::{net::SocketAddr, sync::Arc};

use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{service, trust};

/// Connects to the first of the sockets that accepts.
///
/// # Errors
/// The problem, in the words of Go.
pub(crate) async fn open(
    sockets: &[SocketAddr],
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
) -> Result<(SocketAddr, TlsStream<TcpStream>), String> {
    let mut problem = "no address".to_owned();
    for socket in sockets {
        match TcpStream::connect(socket).await {
            Ok(stream) => {
                // A failure only delays small packets.
                let _ = stream.set_nodelay(true);
                let stream = TlsConnector::from(tls).connect(name, stream).await;
                let stream = stream.map_err(|error| trust::problem(&error))?;
                return Ok((*socket, stream));
            }
            Err(error) => problem = format!("dial tcp {socket}: connect: {}", cause(&error)),
        }
    }
    Err(problem)
}

/// The sockets of a host.
///
/// # Errors
/// The problem, in the words of Go.
pub(crate) async fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    let sockets: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
    if sockets.is_empty() {
        return Err(format!("dial tcp: lookup {host}: no such host"));
    }
    Ok(sockets)
}

/// The sockets to connect to for a port of a Service.
///
/// # Errors
/// The errors of [`service::resolve`] and [`look_up`].
pub(crate) async fn sockets(
    endpoints: service::Endpoints,
    port: u16,
) -> Result<Vec<SocketAddr>, String> {
    match endpoints {
        service::Endpoints::Sockets(sockets) => Ok(sockets),
        service::Endpoints::Name(host) => look_up(&host, port).await,
    }
}

/// The problem of a connection, in the words of Go.
pub(crate) fn problem(error: &hyper::Error) -> String {
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
