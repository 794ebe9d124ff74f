//! A server over an engine in memory, and calls through its service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full};
use longshore_apiserver::{ApiServer, ApiService, NoLogs, NoStreams, NodeStreams, Options};
use longshore_engine::{Clock, Engine, Ids};
use longshore_model::KindInfo;
use serde_json::Value;
use tower::ServiceExt as _;

/// Always the same time.
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

/// Counts.
#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn uid(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012}")
    }

    fn suffix(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed) % 100_000;
        format!("{number:05}")
    }
}

/// A server and the runtime its calls run on.
pub struct Server {
    api: ApiServer,
    pub engine: Engine,
    runtime: tokio::runtime::Runtime,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub json: bool,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON; null when it is none.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Server {
    /// A cluster with nothing in it, and little memory of its past.
    pub fn new() -> Self {
        Self::with_streams(Arc::new(NoStreams))
    }

    /// As [`Server::new`], with containers that can be reached.
    pub fn with_streams(node_streams: Arc<dyn NodeStreams>) -> Self {
        let engine = Engine::open(longshore_engine::Options {
            clock: Arc::new(Stopped),
            ids: Arc::new(Counted::default()),
            history: 100,
            history_bytes: 1 << 20,
            ..longshore_engine::Options::default()
        })
        .expect("an engine in memory opens");
        let api = ApiServer::new(Options {
            engine: engine.clone(),
            token: None,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams,
            faults: false,
            warn_idle: false,
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime starts");
        Self {
            api,
            engine,
            runtime,
        }
    }

    /// The server as a service.
    pub fn service(&self) -> ApiService {
        self.api.service()
    }

    /// Does something that takes its time.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Sends a request. Whatever it was, the answer must be well-formed.
    pub fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let what = format!("{} {}", request.method(), request.uri());
        let head = request.method() == http::Method::HEAD;
        let stream = is_stream(request.uri());
        let answer = self.runtime.block_on(async {
            let response = self.api.service().oneshot(request).await;
            let response = response.expect("no fault drops connections");
            let (parts, mut body) = response.into_parts();
            let mut bytes = Vec::new();
            loop {
                // What a stream has to say at once it says at once.
                let patience = if stream {
                    Duration::from_millis(1)
                } else {
                    Duration::from_secs(10)
                };
                match tokio::time::timeout(patience, body.frame()).await {
                    Ok(Some(frame)) => {
                        let frame = frame.expect("a body in memory does not break off");
                        bytes.extend(frame.into_data().unwrap_or_default());
                    }
                    Ok(None) => break,
                    Err(_) if stream => break,
                    Err(_) => panic!("{what} hangs"),
                }
            }
            let content_type = parts.headers.get(http::header::CONTENT_TYPE);
            let json =
                content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
            let packed = parts.headers.contains_key(http::header::CONTENT_ENCODING);
            Answer {
                code: parts.status.as_u16(),
                json: json && !packed && !stream && !head,
                body: bytes.into(),
            }
        });
        well_formed(&what, &answer);
        answer
    }

    /// Sends a body to a path.
    pub fn call(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .header("user-agent", "fuzz/1")
            .body(Full::new(Bytes::copy_from_slice(body)))
            .expect("a request made here is one");
        self.send(request)
    }

    /// Takes an object away, whatever it waits for.
    pub fn remove(&self, path: &str) {
        let body = br#"{"metadata":{"finalizers":null,"resourceVersion":null}}"#;
        let now = br#"{"gracePeriodSeconds":0,"propagationPolicy":"Background"}"#;
        self.call("PATCH", path, "application/merge-patch+json", body);
        let deleted = self.call("DELETE", path, "application/json", now);
        let left = self.call("GET", path, "application/json", b"");
        assert_eq!(
            left.code,
            404,
            "{path} cannot be deleted: {}\n{}",
            deleted.text(),
            left.text()
        );
    }
}

/// Whether the answer may go on for ever.
fn is_stream(uri: &Uri) -> bool {
    let query = percent_encoding::percent_decode_str(uri.query().unwrap_or_default());
    let query = query.decode_utf8_lossy();
    query.contains("watch") || query.contains("follow") || uri.path().contains("/watch/")
}

/// No fault of the server's own; an error is a `Status` that says its code.
fn well_formed(what: &str, answer: &Answer) {
    // Every Kubernetes up to now answers 500 without a reason to an apply that
    // does not fit its type, and clients know it by its words.
    let untyped = answer.code == 500 && {
        let status = answer.value();
        let message = status["message"].as_str().unwrap_or_default();
        status.get("reason").is_none()
            && message.starts_with("failed to create typed patch object (")
    };
    assert!(answer.code != 500 || untyped, "{what}: {}", answer.text());
    if answer.json {
        let value: Value = serde_json::from_slice(&answer.body)
            .unwrap_or_else(|error| panic!("{what}: {error}: {}", answer.text()));
        if !answer.is_success() && answer.code >= 400 {
            assert_eq!(value["kind"], "Status", "{what}: {value}");
            assert_eq!(value["code"], answer.code, "{what}: {value}");
            assert_eq!(value["status"], "Failure", "{what}: {value}");
            assert!(value["metadata"].is_object(), "{what}: {value}");
        }
    }
}

/// Where the objects of a kind are, in the namespace default.
pub fn collection(kind: &KindInfo) -> String {
    kind.collection_path(Some("default"))
}

/// The kind a word names: `pods`, `jobs.batch`.
pub fn kind(server: &Server, word: &str) -> Option<Arc<KindInfo>> {
    let kinds = server.engine.kinds();
    kinds.into_iter().find(|info| info.qualified() == word)
}

/// The first line, and what follows it.
pub fn first_line(data: &[u8]) -> Option<(&str, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    Some((
        std::str::from_utf8(&data[..end]).ok()?.trim_end(),
        &data[end + 1..],
    ))
}

thread_local! {
    static SERVER: Server = Server::new();
}

/// Does something on a server that lives as long as the thread; what is done
/// must leave no object behind.
pub fn with<T>(work: impl FnOnce(&Server) -> T) -> T {
    SERVER.with(work)
}
