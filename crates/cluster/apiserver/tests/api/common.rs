//! A server over an in-memory engine with a deterministic clock and deterministic IDs,
//! called through its service.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use longshore_apiserver::{
    ApiServer, AuthorizationMode, Body, NoLogs, NoStreams, Options, TokenKey,
};
use longshore_engine::{Clock, Engine, Ids, Storage};
use longshore_node_api::{NodeLogs, NodeStreams};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A clock that is fixed in the past, so that ages are stable, until a test advances it.
#[derive(Default)]
pub struct Past(AtomicI64);

impl Past {
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Past {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "1971-02-03T04:05:06Z".parse().unwrap();
        start + SignedDuration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn uid(&self) -> String {
        format!(
            "00000000-0000-4000-8000-{:012}",
            self.0.fetch_add(1, Ordering::SeqCst)
        )
    }

    fn suffix(&self) -> String {
        format!("{:05}", self.0.fetch_add(1, Ordering::SeqCst))
    }
}

pub struct Server {
    pub api: ApiServer,
    pub engine: Engine,
    pub clock: Arc<Past>,
}

pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub fn message(&self) -> String {
        self.json()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Server {
    pub fn new() -> Self {
        Self::with_logs(Arc::new(NoLogs))
    }

    pub fn with_logs(node_logs: Arc<dyn NodeLogs>) -> Self {
        Self::with(node_logs, Arc::new(NoStreams), false)
    }

    pub fn with_streams(node_streams: Arc<dyn NodeStreams>) -> Self {
        Self::with(Arc::new(NoLogs), node_streams, false)
    }

    /// A server with the fault injection endpoint.
    pub fn with_faults() -> Self {
        Self::with(Arc::new(NoLogs), Arc::new(NoStreams), true)
    }

    /// A server with warnings about kinds that no controller handles.
    pub fn with_idle_warnings() -> Self {
        let mode = AuthorizationMode::Rbac;
        Self::made_of(Arc::new(NoLogs), Arc::new(NoStreams), (false, true), mode)
    }

    /// A server with an authorization mode.
    pub fn authorized_by(mode: AuthorizationMode) -> Self {
        Self::made_of(Arc::new(NoLogs), Arc::new(NoStreams), (false, false), mode)
    }

    fn with(
        node_logs: Arc<dyn NodeLogs>,
        node_streams: Arc<dyn NodeStreams>,
        faults: bool,
    ) -> Self {
        let mode = AuthorizationMode::Rbac;
        Self::made_of(node_logs, node_streams, (faults, false), mode)
    }

    fn made_of(
        node_logs: Arc<dyn NodeLogs>,
        node_streams: Arc<dyn NodeStreams>,
        (faults, warn_unhandled_kinds): (bool, bool),
        authorization: AuthorizationMode,
    ) -> Self {
        let clock = Arc::new(Past::default());
        let engine = Engine::open(longshore_engine::Options {
            storage: Storage::Memory,
            clock: clock.clone(),
            ids: Arc::new(Counted::default()),
            ..longshore_engine::Options::default()
        })
        .unwrap();
        let api = ApiServer::new(Options {
            engine: engine.clone(),
            token: None,
            authorization,
            token_key: Some(TokenKey::ephemeral().unwrap()),
            node_logs,
            node_streams,
            faults,
            warn_unhandled_kinds,
        });
        Self { api, engine, clock }
    }

    /// Calls through the service of a running server.
    pub fn over(api: ApiServer, engine: Engine) -> Self {
        Self {
            api,
            engine,
            clock: Arc::default(),
        }
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        self.api.service().oneshot(request).await.unwrap()
    }

    pub async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .send(request.body(Full::new(body.into())).unwrap())
            .await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            bytes,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }

    pub async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.call("GET", path, &[("accept", accept)], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub async fn patch(&self, path: &str, media_type: &str, body: &str) -> Answer {
        self.call(
            "PATCH",
            path,
            &[("content-type", media_type)],
            body.to_owned(),
        )
        .await
    }

    /// Creates a ConfigMap `name` in the namespace default.
    pub async fn config_map(&self, name: &str) -> Value {
        let body = json!({"metadata": {"name": name}, "data": {"key": "value"}});
        let answer = self
            .post("/api/v1/namespaces/default/configmaps", &body)
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()
    }

    /// Creates a pod `name` in the namespace default.
    pub async fn pod(&self, name: &str, containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers
            .iter()
            .map(|name| json!({"name": name, "image": "i"}))
            .collect();
        let body = json!({"metadata": {"name": name}, "spec": {"containers": containers}});
        let answer = self.post("/api/v1/namespaces/default/pods", &body).await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        answer.json()
    }
}

/// The `Accept` header that kubectl sends.
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// A table as lines: the default columns, then the cells of each row.
pub fn lines(table: &Value, wide: bool) -> String {
    let columns = table["columnDefinitions"].as_array().unwrap();
    let shown: Vec<usize> = (0..columns.len())
        .filter(|&i| wide || columns[i]["priority"] == 0)
        .collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        shown
            .iter()
            .map(|&i| cells(i))
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let mut lines = vec![line(&|i| columns[i]["name"].as_str().unwrap().to_owned())];
    for row in table["rows"].as_array().unwrap() {
        lines.push(line(&|i| match &row["cells"][i] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }));
    }
    lines.join("\n")
}
