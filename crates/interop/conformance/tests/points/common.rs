//! Common parts: a server, a client, a namespace.

use std::time::Duration;

use longshore::{
    Cluster,
    client::{Error, Item, Kind, Patch, View, kinds::ConfigMap},
};
use longshore_conformance::ApiTest;
use serde_json::{Value, json};

/// Longer than any single operation takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// The server under test, a client for the server, and a namespace.
pub(crate) struct Fixture {
    pub(crate) test: ApiTest,
    pub(crate) cluster: Cluster,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with_test(ApiTest::start().await).await
    }

    /// Without other tests on the server, to compact its history.
    pub(crate) async fn exclusive() -> Self {
        Self::with_test(ApiTest::exclusive().await).await
    }

    async fn with_test(test: ApiTest) -> Self {
        let cluster = Cluster::from_kubeconfig(Some(test.kubeconfig()), None)
            .await
            .unwrap();
        Self { test, cluster }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.test.namespace()
    }

    /// A view of a kind in the test's namespace.
    pub(crate) fn view<K: Kind>(&self) -> View<K> {
        let view = self.cluster.view::<K>();
        view.in_namespace(self.namespace()).unwrap()
    }

    /// A ConfigMap with a label whose value is its name.
    pub(crate) async fn config_map(&self, name: &str) -> Item<ConfigMap> {
        let data = json!({
            "metadata": {"name": name, "labels": {"called": name}}, "data": {"key": "value"},
        });
        self.view().create(&data).await.unwrap()
    }

    /// Creates an object and sets its status.
    pub(crate) async fn with_status<K: Kind>(
        &self,
        name: &str,
        spec: &Value,
        status: &Value,
    ) -> Item<K> {
        let view = self.view::<K>();
        let data = json!({"metadata": {"name": name}, "spec": spec});
        view.create(&data).await.unwrap();
        let patch = Patch::merge(json!({ "status": status }));
        view.patch_status(name, &patch).await.unwrap()
    }
}

/// The spec of a workload with one container.
pub(crate) fn workload(replicas: u32) -> Value {
    json!({
        "replicas": replicas, "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "main", "image": "image"}]},
        },
    })
}

/// The field named in a status error.
#[track_caller]
pub(crate) fn absent<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Status { field, .. }) => field,
        other => panic!("expected a missing status field: {other:?}"),
    }
}

/// The message of an invalid-argument error.
#[track_caller]
pub(crate) fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Invalid(text)) => text,
        other => panic!("expected an invalid argument: {other:?}"),
    }
}

/// The message of a namespace error.
#[track_caller]
pub(crate) fn misplaced<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Namespace(text)) => text,
        other => panic!("expected a namespace error: {other:?}"),
    }
}
