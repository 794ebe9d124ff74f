//! An API server with an in-memory engine, and functions that send requests to it.

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
use longshore_apiserver::{ApiServer, ApiService, AuthorizationMode, NoLogs, NoStreams, Options};
use longshore_engine::{Clock, Engine, Ids};
use longshore_model::KindInfo;
use longshore_node_api::NodeStreams;
use serde_json::Value;
use tower::ServiceExt as _;

/// A clock that always returns the same time.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

/// Generates consecutive IDs.
#[derive(Default)]
struct ConsecutiveIds(AtomicU64);

impl Ids for ConsecutiveIds {
    fn uid(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012}")
    }

    fn suffix(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed) % 100_000;
        format!("{number:05}")
    }
}

/// A server, and the runtime for its requests.
pub struct Server {
    api: ApiServer,
    pub engine: Engine,
    runtime: tokio::runtime::Runtime,
}

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    pub code: u16,
    pub json: bool,
    pub body: Bytes,
}

impl Response {
    /// The body as JSON, or null if it is not JSON.
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
    /// Creates a server without objects and with a short history of changes.
    pub fn new() -> Self {
        Self::with_streams(Arc::new(NoStreams))
    }

    /// Like [`Server::new`], with sessions in containers.
    pub fn with_streams(node_streams: Arc<dyn NodeStreams>) -> Self {
        let engine = Engine::open(longshore_engine::Options {
            clock: Arc::new(FixedClock),
            ids: Arc::new(ConsecutiveIds::default()),
            history: 100,
            history_bytes: 1 << 20,
            ..longshore_engine::Options::default()
        })
        .expect("an engine in memory opens");
        let api = ApiServer::new(Options {
            engine: engine.clone(),
            token: None,
            authorization: AuthorizationMode::Rbac,
            token_key: None,
            node_logs: Arc::new(NoLogs),
            node_streams,
            faults: false,
            warn_unhandled_kinds: false,
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

    /// Runs a future on the server's runtime.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Sends a request. Panics if the response is not well-formed.
    pub fn send(&self, request: Request<Full<Bytes>>) -> Response {
        let what = format!("{} {}", request.method(), request.uri());
        let head = request.method() == http::Method::HEAD;
        let stream = is_stream(request.uri());
        let response = self.runtime.block_on(async {
            let response = self.api.service().oneshot(request).await;
            let response = response.expect("no injected fault drops connections");
            let (parts, mut body) = response.into_parts();
            let mut bytes = Vec::new();
            loop {
                // A stream sends its initial data immediately.
                let timeout = if stream {
                    Duration::from_millis(1)
                } else {
                    Duration::from_secs(10)
                };
                match tokio::time::timeout(timeout, body.frame()).await {
                    Ok(Some(frame)) => {
                        let frame = frame.expect("a body in memory has no transport errors");
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
            Response {
                code: parts.status.as_u16(),
                json: json && !packed && !stream && !head,
                body: bytes.into(),
            }
        });
        assert_well_formed(&what, &response);
        response
    }

    /// Sends a body to a path.
    pub fn call(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Response {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .header("user-agent", "fuzz/1")
            .body(Full::new(Bytes::copy_from_slice(body)))
            .expect("the request is valid");
        self.send(request)
    }

    /// Removes an object's finalizers and deletes the object.
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

/// Returns true if the response may be endless.
fn is_stream(uri: &Uri) -> bool {
    let query = percent_encoding::percent_decode_str(uri.query().unwrap_or_default());
    let query = query.decode_utf8_lossy();
    query.contains("watch") || query.contains("follow") || uri.path().contains("/watch/")
}

/// Panics if the response is an internal server error, or an error that is not a `Status`
/// with its code.
fn assert_well_formed(what: &str, response: &Response) {
    // Kubernetes returns 500 without a reason for an apply that does not match its type.
    // Clients recognize this error by its message, so Longshore returns the same.
    let untyped = response.code == 500 && {
        let status = response.value();
        let message = status["message"].as_str().unwrap_or_default();
        status.get("reason").is_none()
            && message.starts_with("failed to create typed patch object (")
    };
    assert!(
        response.code != 500 || untyped,
        "{what}: {}",
        response.text()
    );
    if response.json {
        let value: Value = serde_json::from_slice(&response.body)
            .unwrap_or_else(|error| panic!("{what}: {error}: {}", response.text()));
        if !response.is_success() && response.code >= 400 {
            assert_eq!(value["kind"], "Status", "{what}: {value}");
            assert_eq!(value["code"], response.code, "{what}: {value}");
            assert_eq!(value["status"], "Failure", "{what}: {value}");
            assert!(value["metadata"].is_object(), "{what}: {value}");
        }
    }
}

/// The path of the objects of a kind, in the namespace `default`.
pub fn collection(kind: &KindInfo) -> String {
    kind.collection_path(Some("default"))
}

/// The kind with this name: `pods`, `jobs.batch`.
pub fn kind(server: &Server, word: &str) -> Option<Arc<KindInfo>> {
    let kinds = server.engine.kinds();
    kinds.into_iter().find(|info| info.qualified() == word)
}

/// Splits the input into its first line and the rest.
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

/// Calls `work` with a server that all inputs on this thread share. `work` must delete the
/// objects that it creates.
pub fn with<T>(work: impl FnOnce(&Server) -> T) -> T {
    SERVER.with(work)
}
