//! A fake cluster without sockets: each test defines its responses.

#![allow(clippy::unwrap_used, dead_code)]

pub(crate) mod run;
mod watched_objects;

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use longshore_client::Cluster;
use serde_json::{Value, json};
use watched_objects::WatchedObjects;

/// The response to a request.
pub(crate) enum Answer {
    Json(u16, Value),
    /// Pieces of a stream that then ends properly, breaks, or stays open.
    Stream(Vec<String>, End),
    /// Pieces as they arrive.
    Live(BoxStream<'static, io::Result<String>>),
    /// No response, as if the server were unreachable.
    Unreachable,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Ends,
    Breaks,
    StaysOpen,
}

/// A request as a test receives it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

type Handler = dyn Fn(&ReceivedRequest) -> Answer + Send + Sync;
type Body = UnsyncBoxBody<Bytes, io::Error>;

#[derive(Clone)]
pub(crate) struct Fake {
    handler: Arc<Handler>,
    watched: Arc<Mutex<WatchedObjects>>,
    pub(crate) requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Fake {
    pub(crate) fn new(
        handler: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        // Like Kubernetes, it keeps no logs of deleted pods.
        let handler = move |request: &ReceivedRequest| match request.path.ends_with("/pods/*/log") {
            true => status(404, "NotFound", "pods \"*\" not found"),
            false => handler(request),
        };
        Self {
            handler: Arc::new(handler),
            watched: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// The same fake with other responses to some requests.
    pub(crate) fn with(
        self,
        first: impl Fn(&ReceivedRequest) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let handler = self.handler.clone();
        Self {
            handler: Arc::new(move |request| first(request).unwrap_or_else(|| handler(request))),
            ..self
        }
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::from_service(self.clone(), "default")
    }

    /// `METHOD path` of every request that changes something, without dry runs.
    pub(crate) fn writes(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let writes = (requests.iter())
            .filter(|request| request.method != "GET" && request.query != "dryRun=All");
        writes
            .map(|request| format!("{} {}", request.method, request.path))
            .collect()
    }
}

impl<B> tower::Service<Request<B>> for Fake
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Debug,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let fake = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let request = ReceivedRequest {
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            // This server is older than watch lists.
            let answer = if request.query.contains("sendInitialEvents") {
                status(422, "Invalid", "sendInitialEvents: Forbidden")
            } else {
                fake.requests.lock().unwrap().push(request.clone());
                (fake.handler)(&request)
            };
            let (code, pieces) = match answer {
                Answer::Json(code, mut value) => {
                    fake.watched.lock().unwrap().update(&request, &mut value);
                    (code, stream::iter([Ok(value.to_string())]).boxed())
                }
                Answer::Stream(pieces, end) => {
                    let pieces = stream::iter(pieces.into_iter().map(Ok));
                    let rest = match end {
                        End::Ends => stream::empty().boxed(),
                        End::Breaks => stream::iter([Err(io::Error::other("cut"))]).boxed(),
                        End::StaysOpen => stream::pending().boxed(),
                    };
                    (200, pieces.chain(rest).boxed())
                }
                Answer::Live(pieces) => (200, pieces),
                Answer::Unreachable => {
                    return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
                }
            };
            let pieces = pieces.inspect_ok(move |piece| {
                fake.watched.lock().unwrap().see(&request, piece);
            });
            let frames = pieces.map_ok(|piece| Frame::data(Bytes::from(piece)));
            let body = StreamBody::new(frames).boxed_unsync();
            let response = Response::builder().status(code);
            Ok(response
                .header("content-type", "application/json")
                .body(body)
                .unwrap())
        })
    }
}

/// A list as the server sends it.
pub(crate) fn list(kind: &str, api_version: &str, items: Vec<Value>) -> Answer {
    Answer::Json(
        200,
        json!({
            "kind": format!("{kind}List"), "apiVersion": api_version,
            "metadata": {"resourceVersion": "10"}, "items": items,
        }),
    )
}

/// An error as the server sends it.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Json(
        code,
        json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "reason": reason, "message": message, "code": code,
        }),
    )
}

/// Responses in sequence; the last one is repeated.
pub(crate) struct Script(Mutex<VecDeque<(Vec<String>, End)>>);

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = (Vec<String>, End)>) -> Self {
        Self(Mutex::new(answers.into_iter().collect()))
    }

    pub(crate) fn next(&self) -> Answer {
        let mut answers = self.0.lock().unwrap();
        let (pieces, end) = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        };
        Answer::Stream(pieces, end)
    }
}
