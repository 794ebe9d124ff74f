//! A server, a client of it, a namespace.

use std::time::Duration;

use longshore::{
    Cluster,
    client::{Error, Item, Kind, Patch, View, kinds::ConfigMap},
};
use longshore_conformance::ApiTest;
use serde_json::{Value, json};

/// Long enough for anything that happens at all.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The server under test, our client's connection to it, and a namespace.
pub(crate) struct Here {
    pub(crate) test: ApiTest,
    pub(crate) cluster: Cluster,
}

impl Here {
    pub(crate) async fn start() -> Self {
        Self::of(ApiTest::start().await).await
    }

    /// With the server to itself, to make it forget its history.
    pub(crate) async fn alone() -> Self {
        Self::of(ApiTest::alone().await).await
    }

    async fn of(test: ApiTest) -> Self {
        let cluster = Cluster::from_kubeconfig(Some(test.kubeconfig()), None)
            .await
            .unwrap();
        Self { test, cluster }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.test.namespace()
    }

    /// The view of a kind in the test's namespace.
    pub(crate) fn view<K: Kind + Default>(&self) -> View<K> {
        let view = self.cluster.view::<K>();
        view.in_namespace(self.namespace()).unwrap()
    }

    /// A ConfigMap with a label of the same name.
    pub(crate) async fn config_map(&self, name: &str) -> Item<ConfigMap> {
        let data = json!({
            "metadata": {"name": name, "labels": {"called": name}}, "data": {"key": "value"},
        });
        self.view().create(&data).await.unwrap()
    }

    /// An object whose status is as given.
    pub(crate) async fn with_status<K: Kind + Default>(
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

/// The field that a status error names.
#[track_caller]
pub(crate) fn absent<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Status { field, .. }) => field,
        other => panic!("an absent status field is expected: {other:?}"),
    }
}

/// What an argument is refused with, before any request.
#[track_caller]
pub(crate) fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Invalid(text)) => text,
        other => panic!("a refused argument is expected: {other:?}"),
    }
}

/// What a namespace is refused with.
#[track_caller]
pub(crate) fn misplaced<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Namespace(text)) => text,
        other => panic!("a refused namespace is expected: {other:?}"),
    }
}
