//! The connection of a test to the server under test.

use std::{
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::{
    PatchType, RequestBuilder, Response, ServerKind, Watch, notes, target::Target,
    transport::Transport,
};

/// Tests that compact the history of the shared server must run exclusively.
static HISTORY: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);

/// The lock of [`HISTORY`] that a test holds until it ends.
enum HistoryLock {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Exclusive { _guard: OwnedRwLockWriteGuard<()> },
}

/// The server under test, a connection to it, and the test's own namespace.
///
/// ```no_run
/// # use serde_json::json;
/// # async fn example() {
/// let test = longshore_conformance::ApiTest::start().await;
/// let maps = test.path("v1", "configmaps");
/// test.create(&maps, &json!({"metadata": {"name": "a"}})).await;
/// test.post(&maps, &json!({"metadata": {"name": "a"}})).await
///     .refused(409, "AlreadyExists");
/// let mut watch = test.watch(&format!("{maps}?watch=1")).await;
/// watch.event_of("ADDED", "a").await;
/// # }
/// ```
pub struct ApiTest {
    transport: Transport,
    target: Target,
    namespace: String,
    lock: HistoryLock,
}

impl ApiTest {
    /// Finds or starts the server, connects to it, and creates the namespace.
    ///
    /// # Panics
    /// If any of this fails.
    pub async fn start() -> Self {
        let guard = HISTORY.clone().read_owned().await;
        Self::start_with(HistoryLock::Shared { _guard: guard }, false).await
    }

    /// Like [`ApiTest::start`], with a node that runs pods. The real servers [do not
    /// have](ApiTest::skip_on_real) one.
    ///
    /// # Panics
    /// Like [`ApiTest::start`].
    pub async fn with_node() -> Self {
        let guard = HISTORY.clone().read_owned().await;
        Self::start_with(HistoryLock::Shared { _guard: guard }, true).await
    }

    /// Like [`ApiTest::start`], without other tests on the server: for tests that
    /// [compact its history](ApiTest::expire_history).
    ///
    /// # Panics
    /// Like [`ApiTest::start`].
    pub async fn exclusive() -> Self {
        let guard = HISTORY.clone().write_owned().await;
        Self::start_with(HistoryLock::Exclusive { _guard: guard }, false).await
    }

    /// Like [`ApiTest::start`], with controllers and without nodes: on the control plane that
    /// `cargo xtask controllers` runs, or on a new embedded cluster.
    ///
    /// # Panics
    /// Like [`ApiTest::start`].
    pub async fn with_controllers() -> Self {
        let guard = HISTORY.clone().read_owned().await;
        let lock = HistoryLock::Shared { _guard: guard };
        Self::start_on(Target::control_plane().await, lock).await
    }

    async fn start_with(lock: HistoryLock, node: bool) -> Self {
        Self::start_on(Target::find(node).await, lock).await
    }

    async fn start_on(target: Target, lock: HistoryLock) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let transport = Transport::connect(&target.authority).await;
        let test = Self {
            transport,
            target,
            namespace: format!("t-{}-{number}", std::process::id()),
            lock,
        };
        let namespace = json!({"metadata": {"name": test.namespace}});
        test.create("/api/v1/namespaces", &namespace).await;
        test
    }

    /// The namespace of this test. Names of cluster-scoped objects also start with it, so
    /// that tests on one server do not conflict.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The server under test.
    #[must_use]
    pub fn server_kind(&self) -> ServerKind {
        self.target.server_kind
    }

    /// Returns true if the server is a real kube-apiserver.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.server_kind() != ServerKind::Embedded
    }

    /// Returns true if the server is a real kube-apiserver 1.20.
    fn is_old(&self) -> bool {
        self.server_kind() == ServerKind::Old
    }

    /// A kubeconfig for other clients.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.target.kubeconfig
    }

    /// The command line of the real server, for tests that start and stop another one on
    /// the same etcd.
    #[must_use]
    pub fn apiserver(&self) -> &[String] {
        &self.target.apiserver
    }

    /// `127.0.0.1:6443`, for tests that open their own connections.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.target.authority
    }

    /// Returns true if the server is a real one, which does not support what the test checks: then
    /// the test returns immediately. The docs contain `what`.
    #[must_use]
    pub fn skip_on_real(&self, what: &str) -> bool {
        if self.is_real() {
            notes::write("lacks", what);
        }
        self.is_real()
    }

    /// Returns true if the server's watch cache still serves revisions that etcd has compacted:
    /// then a test of compacted revisions returns immediately.
    #[must_use]
    pub fn skip_on_cached_history(&self) -> bool {
        let serves_compacted = self.server_kind() == ServerKind::Real;
        if serves_compacted {
            notes::write("lacks", "immediate expiry of compacted revisions");
        }
        serves_compacted
    }

    /// Returns true if the server is too old for the feature that the test checks: then the test
    /// returns immediately. `what` names the feature and its first release; the docs contain it.
    #[must_use]
    pub fn skip_on_old(&self, what: &str) -> bool {
        if self.is_old() {
            notes::write("lacks", what);
        }
        self.is_old()
    }

    /// Returns true if the server is newer than the old one: guards assertions about newer
    /// behaviour. `what` names that behaviour; the docs contain it.
    #[must_use]
    pub fn is_newer(&self, what: &str) -> bool {
        if self.is_old() {
            notes::write("newer", what);
        }
        !self.is_old()
    }

    /// The expected value where Kubernetes has changed since 1.20: `old` on 1.20,
    /// otherwise `new`. `why` names the change; the docs contain it.
    pub fn old_or_new<T>(&self, old: T, new: T, why: &str) -> T {
        if self.is_old() {
            notes::write("differs", why);
            old
        } else {
            new
        }
    }

    /// The path of a collection in the test's namespace:
    /// `path("v1", "pods")`, `path("apps/v1", "deployments")`.
    #[must_use]
    pub fn path(&self, group_version: &str, plural: &str) -> String {
        let root = root(group_version);
        format!("{root}/namespaces/{}/{plural}", self.namespace)
    }

    /// The path of a collection across namespaces or of cluster-scoped objects:
    /// `cluster_path("v1", "nodes")`.
    #[must_use]
    pub fn cluster_path(&self, group_version: &str, plural: &str) -> String {
        format!("{}/{plural}", root(group_version))
    }

    /// A builder for a request.
    #[must_use]
    pub fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let Target {
            authority, token, ..
        } = &self.target;
        RequestBuilder::new(self.transport.clone(), authority, token, method, path)
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Response {
        self.request("GET", path).send().await
    }

    /// POST; does not check the response.
    pub async fn post(&self, path: &str, object: &Value) -> Response {
        self.request("POST", path).json(object).send().await
    }

    /// POST that must return 201; returns the object.
    ///
    /// # Panics
    /// If the status code differs.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        self.post(path, object).await.is(201)
    }

    /// PUT.
    pub async fn put(&self, path: &str, object: &Value) -> Response {
        self.request("PUT", path).json(object).send().await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, kind: PatchType, patch: &Value) -> Response {
        self.request("PATCH", path).patch(kind, patch).send().await
    }

    /// DELETE without a body.
    pub async fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path).send().await
    }

    /// DELETE with options.
    pub async fn delete_with(&self, path: &str, options: &Value) -> Response {
        self.request("DELETE", path).json(options).send().await
    }

    /// Starts a watch; `path` contains the watch parameters.
    ///
    /// # Panics
    /// If the status code is not 200.
    pub async fn watch(&self, path: &str) -> Watch {
        self.request("GET", path).watch().await
    }

    /// The items of a list and its resource version.
    ///
    /// # Panics
    /// If the status code is not 200.
    pub async fn list(&self, path: &str) -> (Vec<Value>, String) {
        let list = self.get(path).await.ok();
        let version = list["metadata"]["resourceVersion"].as_str();
        (
            list["items"].as_array().cloned().unwrap_or_default(),
            version.unwrap_or_default().to_owned(),
        )
    }

    /// Compacts the server's history up to now.
    ///
    /// # Panics
    /// If the test is not [exclusive](ApiTest::exclusive), or if etcd returns an error.
    pub async fn expire_history(&self) {
        assert!(
            matches!(self.lock, HistoryLock::Exclusive { .. }),
            "begin the test with ApiTest::exclusive()"
        );
        if let Some(server) = &self.target.server {
            server.expire_history().await;
        }
        if let Some(etcd) = &self.target.etcd {
            crate::etcd::compact(etcd).await;
        }
    }
}

fn root(group_version: &str) -> String {
    match group_version {
        "v1" => "/api/v1".to_owned(),
        other => format!("/apis/{other}"),
    }
}
