//! What a test of a rule works with.

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
    Answer, Call, Flavour, PatchType, Watching, notes, target::Target, transport::Transport,
};

/// On the shared server, who forgets its history must be alone.
static HISTORY: LazyLock<Arc<RwLock<()>>> = LazyLock::new(Arc::default);

/// What a test holds of [`HISTORY`] to its end.
enum Turn {
    Shared { _guard: OwnedRwLockReadGuard<()> },
    Alone { _guard: OwnedRwLockWriteGuard<()> },
}

/// The server under test, a connection to it, and a namespace of the test's
/// own.
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
    turn: Turn,
}

impl ApiTest {
    /// Finds the server, connects, makes the namespace.
    ///
    /// # Panics
    /// When any of it fails: a test cannot go on without.
    pub async fn start() -> Self {
        let guard = HISTORY.clone().read_owned().await;
        Self::start_in_turn(Turn::Shared { _guard: guard }, false).await
    }

    /// As [`ApiTest::start`], with a node that runs pods. The real servers
    /// [are without](ApiTest::is_without) one.
    ///
    /// # Panics
    /// As [`ApiTest::start`].
    pub async fn with_node() -> Self {
        let guard = HISTORY.clone().read_owned().await;
        Self::start_in_turn(Turn::Shared { _guard: guard }, true).await
    }

    /// As [`ApiTest::start`], while no other test has the server: for those that
    /// [forget its history](ApiTest::expire_history).
    ///
    /// # Panics
    /// As [`ApiTest::start`].
    pub async fn alone() -> Self {
        let guard = HISTORY.clone().write_owned().await;
        Self::start_in_turn(Turn::Alone { _guard: guard }, false).await
    }

    async fn start_in_turn(turn: Turn, node: bool) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let target = Target::find(node).await;
        let transport = Transport::connect(&target.authority).await;
        let test = Self {
            transport,
            target,
            namespace: format!("t-{}-{number}", std::process::id()),
            turn,
        };
        let namespace = json!({"metadata": {"name": test.namespace}});
        test.create("/api/v1/namespaces", &namespace).await;
        test
    }

    /// The namespace of this test. Names of cluster-wide objects begin with
    /// it, too, so that tests on one server are not in each other's way.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Which server this is.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.target.flavour
    }

    /// Whether it is Kubernetes' own.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.flavour() != Flavour::Embedded
    }

    /// Whether it is Kubernetes' own of version 1.20.
    fn is_old(&self) -> bool {
        self.flavour() == Flavour::Old
    }

    /// A kubeconfig for other clients.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.target.kubeconfig
    }

    /// The command line of the real server, for tests that start another one on
    /// the same store, to end it as they like.
    #[must_use]
    pub fn apiserver(&self) -> &[String] {
        &self.target.apiserver
    }

    /// `127.0.0.1:6443`, for tests that open connections of their own.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.target.authority
    }

    /// Whether this server is without what the whole test is about, as the real ones
    /// are: then the test returns at once. `what` is shown in the docs.
    #[must_use]
    pub fn is_without(&self, what: &str) -> bool {
        if self.is_real() {
            notes::write("lacks", what);
        }
        self.is_real()
    }

    /// Whether this server's cache answers for versions that its store has forgotten, for
    /// a while: then a test of forgotten versions returns at once.
    #[must_use]
    pub fn remembers(&self) -> bool {
        let remembers = self.flavour() == Flavour::Real;
        if remembers {
            notes::write("lacks", "a cache that forgets as soon as its store");
        }
        remembers
    }

    /// Whether this server is too old for what the whole test is about: then the test
    /// returns at once. `what` names the feature and its first release; it is
    /// shown in the docs.
    #[must_use]
    pub fn lacks(&self, what: &str) -> bool {
        if self.is_old() {
            notes::write("lacks", what);
        }
        self.is_old()
    }

    /// Whether this server has something that the old one has not: guards the
    /// assertions about it. `what` is shown in the docs.
    #[must_use]
    pub fn newer(&self, what: &str) -> bool {
        if self.is_old() {
            notes::write("newer", what);
        }
        !self.is_old()
    }

    /// What to expect where Kubernetes has changed since 1.20: there `old`,
    /// otherwise `new`. `why` says what changed, and is shown in the docs.
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

    /// The path of a collection over all namespaces, or of cluster-wide
    /// objects: `wide("v1", "nodes")`.
    #[must_use]
    pub fn wide(&self, group_version: &str, plural: &str) -> String {
        format!("{}/{plural}", root(group_version))
    }

    /// A request to put together.
    #[must_use]
    pub fn call(&self, method: &str, path: &str) -> Call {
        let Target {
            authority, token, ..
        } = &self.target;
        Call::new(self.transport.clone(), authority, token, method, path)
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).send().await
    }

    /// POST, whatever the answer.
    pub async fn post(&self, path: &str, object: &Value) -> Answer {
        self.call("POST", path).json(object).send().await
    }

    /// POST that succeeds with 201; gives the object.
    ///
    /// # Panics
    /// When it is answered otherwise.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        self.post(path, object).await.is(201)
    }

    /// PUT.
    pub async fn put(&self, path: &str, object: &Value) -> Answer {
        self.call("PUT", path).json(object).send().await
    }

    /// PATCH.
    pub async fn patch(&self, path: &str, kind: PatchType, patch: &Value) -> Answer {
        self.call("PATCH", path).patch(kind, patch).send().await
    }

    /// DELETE without a body.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path).send().await
    }

    /// DELETE with options.
    pub async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.call("DELETE", path).json(options).send().await
    }

    /// GET that streams: `path` asks for a watch.
    ///
    /// # Panics
    /// When it is not answered with 200.
    pub async fn watch(&self, path: &str) -> Watching {
        self.call("GET", path).watch().await
    }

    /// A list's items and version.
    ///
    /// # Panics
    /// When it is not answered with 200.
    pub async fn list(&self, path: &str) -> (Vec<Value>, String) {
        let list = self.get(path).await.ok();
        let version = list["metadata"]["resourceVersion"].as_str();
        (
            list["items"].as_array().cloned().unwrap_or_default(),
            version.unwrap_or_default().to_owned(),
        )
    }

    /// Makes the server forget all history before this moment.
    ///
    /// # Panics
    /// Unless the test is [alone](ApiTest::alone), or when etcd refuses.
    pub async fn expire_history(&self) {
        assert!(
            matches!(self.turn, Turn::Alone { .. }),
            "begin the test with ApiTest::alone()"
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
