//! The server as a tower service: one request in, one response out. Faults
//! become `Status` objects here, and so do panics.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response};
use tokio::sync::watch;

use crate::{
    auth::Token,
    body::Body,
    fault::Fault,
    handlers,
    input::{self, RequestBody},
    query::Query,
    reply,
    route::Route,
    server::Shared,
};

/// Answers requests in process: no sockets, no authentication. Cheap to clone.
#[derive(Clone)]
pub struct ApiService {
    pub(crate) shared: Arc<Shared>,
    /// Asked for when set: the face to the network.
    pub(crate) token: Option<Token>,
    /// Becomes true when streams are to end.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl std::fmt::Debug for ApiService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiService").finish_non_exhaustive()
    }
}

/// A request on its way through the handlers.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Call {
    /// The client's name: its user agent up to the first slash.
    pub(crate) fn user_agent(&self) -> Option<&str> {
        let agent = self.headers.get(http::header::USER_AGENT)?.to_str().ok()?;
        agent
            .split('/')
            .next()
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }
}

/// Done when the server is stopping.
pub(crate) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // An error means that the server is gone, which is the same.
    let _ = stopping.wait_for(|stop| *stop).await;
}

impl ApiService {
    async fn respond(self, mut request: Request<RequestBody>) -> Response<Body> {
        let head = request.method() == Method::HEAD;
        if head {
            *request.method_mut() = Method::GET;
        }
        let headers = request.headers().clone();
        let answered = AssertUnwindSafe(self.answer(request)).catch_unwind().await;
        let mut response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(fault)) => reply::fault(&fault),
            Err(_) => {
                tracing::error!("a handler panicked");
                reply::fault(&Fault::internal("the server met a fault of its own"))
            }
        };
        reply::finish(&mut response, &headers);
        if head {
            *response.body_mut() = Body::empty();
        }
        response
    }

    async fn answer(self, request: Request<RequestBody>) -> reply::Reply {
        let (parts, body) = request.into_parts();
        let route = Route::parse(parts.uri.path());
        if let Some(token) = &self.token {
            token.check(&parts.headers, route.as_ref())?;
        }
        let call = Call {
            shared: self.shared,
            method: parts.method,
            query: Query::parse(parts.uri.query())?,
            headers: parts.headers,
            stopping: self.stopping,
        };
        handlers::dispatch(call, route.ok_or_else(Fault::unknown_path)?, body).await
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(input::boxed);
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}
