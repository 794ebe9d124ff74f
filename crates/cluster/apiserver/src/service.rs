//! The in-process server as a tower service.
//!
//! hyper can upgrade only connections that it manages, so an upgrade request gets an in-memory
//! connection with hyper's client at one end and its server at the other.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use hyper::{body::Incoming, client, server, service::service_fn};
use hyper_util::rt::TokioIo;

use crate::{
    body::Body,
    input::{self, RequestBody},
    respond::{ConnectionDropped, Responder},
};

/// Responds to requests in process, without sockets and authentication. Cheap
/// to clone.
#[derive(Clone)]
pub struct ApiService(pub(crate) Responder);

impl std::fmt::Debug for ApiService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiService").finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    /// Only an injected fault can prevent a response.
    type Error = ConnectionDropped;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectionDropped>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionDropped>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(input::boxed);
        let responder = self.0.clone();
        if wants_upgrade(&request) {
            return Box::pin(upgrade(responder, request));
        }
        Box::pin(responder.respond(request))
    }
}

/// Buffer size of each direction of the connection in bytes.
const BUFFER_SIZE: usize = 64 * 1024;

/// Returns true if a request asks to upgrade the connection.
fn wants_upgrade<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(header::UPGRADE)
}

/// Responds to an upgrade request. The response leads to the upgraded
/// connection, like one over a socket.
async fn upgrade(
    responder: Responder,
    mut request: Request<RequestBody>,
) -> Result<Response<Body>, ConnectionDropped> {
    let (near, far) = tokio::io::duplex(BUFFER_SIZE);
    let serving = server::conn::http1::Builder::new()
        .serve_connection(
            TokioIo::new(far),
            service_fn(move |request: Request<Incoming>| {
                Box::pin(responder.clone().respond(request.map(input::boxed)))
            }),
        )
        .with_upgrades();
    tokio::spawn(serving);
    let failed = |error: hyper::Error| {
        tracing::debug!(%error, "an in-process connection ended early");
        ConnectionDropped
    };
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(near))
        .await
        .map_err(failed)?;
    tokio::spawn(connection.with_upgrades());
    let host = http::HeaderValue::from_static("in-process");
    request.headers_mut().entry(header::HOST).or_insert(host);
    // Only the path is sent over a connection.
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(http::Uri::from).unwrap_or_default();
    let response = sender.send_request(request).await.map_err(failed)?;
    Ok(response.map(Body::forwarded))
}
