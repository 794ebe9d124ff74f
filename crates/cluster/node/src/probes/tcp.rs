//! Connections of probes, with Go's error messages.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::net::{TcpStream, lookup_host};

use super::Outcome;

/// Checks that a connection can be made.
pub(super) async fn probe(host: &str, port: u16, timeout: Duration) -> Outcome {
    match tokio::time::timeout(timeout, connect(host, port)).await {
        Ok(Ok(_)) => Outcome::Success,
        Ok(Err(message)) => Outcome::Failure(message),
        Err(_) => Outcome::Failure(format!("dial tcp {}: i/o timeout", join(host, port))),
    }
}

/// Connects to a host. Returns the error message of Go's dialer.
pub(super) async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => lookup_host((host, port))
            .await
            .map(Iterator::collect)
            .unwrap_or_default(),
    };
    let mut failure = format!("dial tcp: lookup {host}: no such host");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                failure = format!("dial tcp {address}: connect: {}", system_text(&error));
            }
        }
    }
    Err(failure)
}

/// Joins a host and a port as in a URL.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Returns an error's text in Go, such as `connection refused`.
pub(super) fn system_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => {
            let text = error.to_string().to_lowercase();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}
