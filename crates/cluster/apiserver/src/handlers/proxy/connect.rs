//! The connection to a pod's port.

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use super::pods::Destination;
use crate::{call::Call, input::RequestBody, remote::trust};

/// Sends a request over a new connection. The error is the problem.
pub(super) async fn send(
    call: &Call,
    destination: &Destination,
    is_tls: bool,
    request: Request<RequestBody>,
) -> Result<Response<Incoming>, String> {
    let streams = &call.shared.node_streams;
    let opening = streams.connect(destination.pod.clone(), destination.port);
    let connection = opening.await.map_err(|error| error.to_string())?;
    if !is_tls {
        return exchange(TokioIo::new(connection), request).await;
    }
    // Pods have no certificates that this server could verify, and no credentials are sent to them.
    let config = trust::any(None)?;
    let name = destination.authority();
    let name = name.split(':').next().unwrap_or_default().to_owned();
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(config);
    let connection = connector.connect(name, connection).await;
    let connection = connection.map_err(|error| error.to_string())?;
    exchange(TokioIo::new(connection), request).await
}

async fn exchange<T>(io: T, request: Request<RequestBody>) -> Result<Response<Incoming>, String>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(io)
        .await
        .map_err(|error| error.to_string())?;
    // The connection ends with the response's body, or when the client drops it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a proxied connection ended");
        }
    });
    let response = sender.send_request(request).await;
    response.map_err(|error| error.to_string())
}
