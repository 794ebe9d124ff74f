//! Upgrades in process. An upgraded connection is hyper's own, so such a request
//! gets a connection made of memory: hyper's client at one end, its server with
//! our service at the other.

use http::{Request, Response, header};
use hyper::{client, server, service::service_fn};
use hyper_util::rt::TokioIo;
use tower::Service as _;

use crate::{
    Body,
    input::RequestBody,
    service::{ApiService, ConnectionDropped},
};

/// Bytes on their way on each side of the connection.
const BUFFER: usize = 64 * 1024;

/// Whether a request asks for another protocol.
pub(crate) fn wants_upgrade<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(header::UPGRADE)
}

/// Answers a request that asks for another protocol. The answer leads to the
/// upgraded connection, as one over a socket does.
pub(crate) async fn upgrade(
    mut service: ApiService,
    mut request: Request<RequestBody>,
) -> Result<Response<Body>, ConnectionDropped> {
    let (near, far) = tokio::io::duplex(BUFFER);
    service.in_process = false;
    let serving = server::conn::http1::Builder::new()
        .serve_connection(
            TokioIo::new(far),
            service_fn(move |request| service.clone().call(request)),
        )
        .with_upgrades();
    tokio::spawn(serving);
    let failed = |error: hyper::Error| {
        tracing::debug!(%error, "a connection in process ended early");
        ConnectionDropped
    };
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(near))
        .await
        .map_err(failed)?;
    tokio::spawn(connection.with_upgrades());
    let host = http::HeaderValue::from_static("in-process");
    request.headers_mut().entry(header::HOST).or_insert(host);
    // Only the path goes over a connection.
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(http::Uri::from).unwrap_or_default();
    let response = sender.send_request(request).await.map_err(failed)?;
    Ok(response.map(Body::passed_on))
}
