//! Requests to an aggregated API server, each over a new connection.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use longshore_engine::Engine;

use super::{Aggregation, headers, index::Remote};
use crate::{limits, remote::connect, user::User};

/// Time limit for opening a connection, the same as Go's.
const DIAL_TIME: Duration = Duration::from_secs(30);

/// A document that is read from a server.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) path: &'a str,
    pub(super) accept: &'static str,
    /// The `ETag` of the known state, which the server does not send again.
    pub(super) known: Option<&'a str>,
}

impl<'a> Document<'a> {
    pub(super) fn json(path: &'a str) -> Self {
        Self {
            path,
            accept: "application/json",
            known: None,
        }
    }
}

impl Aggregation {
    /// Sends a request. The connection ends with the response.
    ///
    /// # Errors
    /// The problem, in the words of Go.
    pub(super) async fn send<B>(
        &self,
        engine: &Engine,
        remote: &Remote,
        request: Request<B>,
    ) -> Result<Response<Incoming>, String>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let tls = remote.tls(self.proxy()?)?;
        let sockets = remote.sockets(engine).await?;
        let opening = connect::open(&sockets, remote.server_name()?, tls);
        let opened = tokio::time::timeout(DIAL_TIME, opening).await;
        let (_, stream) = opened.map_err(|_| "i/o timeout".to_owned())??;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| connect::problem(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to an aggregated API server ended early");
            }
        });
        let response = sender.send_request(request).await;
        response.map_err(|error| connect::problem(&error))
    }

    /// Reads a document as a user of the server itself.
    ///
    /// # Errors
    /// The errors of [`Aggregation::send`]; the document is too large.
    pub(super) async fn read(
        &self,
        engine: &Engine,
        remote: &Remote,
        document: Document<'_>,
        user: &User,
    ) -> Result<(StatusCode, HeaderMap, Bytes), String> {
        let mut request = Request::new(Full::<Bytes>::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = document
            .path
            .parse::<Uri>()
            .map_err(|error| error.to_string())?;
        let sent = request.headers_mut();
        let host = HeaderValue::from_str(&remote.host()).map_err(|error| error.to_string())?;
        sent.insert(header::HOST, host);
        sent.insert(header::ACCEPT, HeaderValue::from_static(document.accept));
        if let Some(Ok(known)) = document.known.map(HeaderValue::from_str) {
            sent.insert(header::IF_NONE_MATCH, known);
        }
        sent.insert(
            header::USER_AGENT,
            HeaderValue::from_static("kube-apiserver"),
        );
        headers::set_user(sent, user);
        let response = self.send(engine, remote, request).await?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, limits::WEBHOOK_RESPONSE).collect().await;
        let body = body.map_err(|error| error.to_string())?;
        Ok((parts.status, parts.headers, body.to_bytes()))
    }
}
