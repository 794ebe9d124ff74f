//! A fake API server: a queue of canned responses, and a record of the requests.

#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube_client::client::Body;
use longshore_client::{Cluster, Timing};
use serde_json::{Value, json};

type AnswerBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A response of the fake.
pub enum Answer {
    /// Status code, headers, body.
    Plain(u16, Vec<(&'static str, String)>, Bytes),
    /// Lines of a watch; then the connection ends, breaks, or stays silent.
    Lines(Vec<String>, End),
    /// Status code, and a body that repeats this chunk and never ends.
    Endless(u16, Bytes),
    /// The connection is refused.
    Refused,
}

/// The end of a stream.
#[derive(Clone, Copy)]
pub enum End {
    Clean,
    Broken,
    Silent,
}

impl Answer {
    pub fn json(code: u16, value: &Value) -> Self {
        Self::Plain(code, Vec::new(), value.to_string().into())
    }

    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::json(code, &status(code, reason, message))
    }

    pub fn events(events: &[Value], end: End) -> Self {
        Self::Lines(
            events.iter().map(|event| format!("{event}\n")).collect(),
            end,
        )
    }
}

pub fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}

pub fn pod(name: &str, version: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "n", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(),
        },
        "spec": {}, "status": {"phase": "Running"},
    })
}

pub fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

pub fn bookmark(version: u64) -> Value {
    let metadata = json!({"resourceVersion": version.to_string()});
    event(
        "BOOKMARK",
        &json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}),
    )
}

pub fn list(version: u64, items: &[Value]) -> Value {
    json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    })
}

/// The response to a watch list request by a server without watch lists.
pub fn no_watch_lists() -> Answer {
    let message = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden";
    Answer::status(422, "Invalid", message)
}

/// A request as the fake received it.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub target: String,
    pub content_type: String,
    pub body: Value,
}

impl ReceivedRequest {
    /// Returns a parameter of the query, as the client sent it.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

#[derive(Clone, Default)]
pub struct Fake {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Held by each silent connection that is open.
    open: Arc<()>,
}

impl Fake {
    /// Sends these responses in order; further requests get a 500.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self {
            answers,
            requests: Arc::default(),
            open: Arc::default(),
        }
    }

    pub fn push(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }

    /// Waits until this many silent connections are open.
    pub async fn opened(&self, count: usize) {
        let clones = Arc::strong_count(&self.answers);
        let reached = async {
            while Arc::strong_count(&self.open) != clones + count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached)
            .await
            .unwrap();
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// A cluster on the fake, with retry delays of a millisecond.
    pub fn cluster(&self) -> Cluster {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move { fake.answer(request).await }
        });
        let mut timing = Timing::default();
        timing.initial_backoff = Duration::from_millis(1);
        timing.max_backoff = Duration::from_millis(2);
        timing.watch_idle = Duration::from_millis(60);
        Cluster::from_service(service, "default").with_timing(timing)
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response<AnswerBody>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.requests.lock().unwrap().push(ReceivedRequest {
            method: parts.method.to_string(),
            target: parts.uri.to_string(),
            content_type: parts
                .headers
                .get("content-type")
                .map(|value| value.to_str().unwrap().to_owned())
                .unwrap_or_default(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        });
        let answer = self.answers.lock().unwrap().pop_front();
        let answer =
            answer.unwrap_or_else(|| Answer::status(500, "InternalError", "no response left"));
        match answer {
            Answer::Refused => Err(std::io::Error::other("connection refused")),
            Answer::Plain(code, headers, body) => {
                let mut response = Response::builder().status(code);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let body =
                    http_body_util::Full::new(body).map_err(|error: Infallible| match error {});
                Ok(response.body(body.boxed_unsync()).unwrap())
            }
            Answer::Endless(code, chunk) => {
                let frames = stream::repeat(chunk).map(|chunk| Ok(http_body::Frame::data(chunk)));
                let body = StreamBody::new(frames).boxed_unsync();
                Ok(Response::builder().status(code).body(body).unwrap())
            }
            Answer::Lines(lines, end) => {
                let frames =
                    stream::iter(lines).map(|line| Ok(http_body::Frame::data(Bytes::from(line))));
                let rest = match end {
                    End::Clean => stream::empty().boxed(),
                    End::Broken => {
                        stream::once(async { Err(std::io::Error::other("connection reset")) })
                            .boxed()
                    }
                    End::Silent => {
                        let open = self.open.clone();
                        stream::pending()
                            .inspect(move |_| drop(open.clone()))
                            .boxed()
                    }
                };
                Ok(Response::new(
                    StreamBody::new(frames.chain(rest)).boxed_unsync(),
                ))
            }
        }
    }
}
