//! A cluster without a node agent. The tests write the statuses of pods instead.

use std::{future::Future, sync::Arc, time::Duration};

use longshore_apiserver::{ApiServer, NoLogs, NoStreams};
use longshore_client::{
    Cluster, Error, Item, Patch,
    kinds::{Job, Pod},
};
use longshore_controllers::{Controllers, LocalVolumes, Options};
use longshore_engine::Engine;
use serde_json::{Value, json};

/// An API server and its controllers.
pub(crate) struct Fixture {
    pub(crate) cluster: Cluster,
    pub(crate) server: ApiServer,
    controllers: Option<Controllers>,
    local_volumes: Option<tempfile::TempDir>,
}

impl Fixture {
    /// Starts the API server and the controllers, without nodes.
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Like [`Fixture::start`], with volumes for claims on the node `n`.
    pub(crate) async fn with_local_volumes() -> Self {
        Self::start_with(Some(tempfile::tempdir().unwrap())).await
    }

    async fn start_with(local_volumes: Option<tempfile::TempDir>) -> Self {
        let server = api_server(longshore_apiserver::AuthorizationMode::Rbac);
        let cluster = Cluster::from_service(server.service(), "default");
        let mut fixture = Self {
            cluster,
            server,
            controllers: None,
            local_volumes,
        };
        fixture.start_controllers().await;
        fixture
    }

    /// Like [`Fixture::start`], with a node that can run a thousand pods.
    pub(crate) async fn with_node() -> Self {
        let fixture = Self::start().await;
        fixture.add_node("1000").await;
        fixture
    }

    pub(crate) async fn start_controllers(&mut self) {
        self.start_controllers_with(|_| {}).await;
    }

    /// Like [`Fixture::start_controllers`], with changed options.
    pub(crate) async fn start_controllers_with(&mut self, change: impl FnOnce(&mut Options)) {
        let mut options = Options::default();
        options.root_ca = Some("a certificate".into());
        options.first_pod_backoff = Duration::from_millis(20);
        options.pod_check_interval = Duration::from_millis(50);
        options.missing_node_delay = Duration::from_millis(200);
        change(&mut options);
        options.local_volumes = self.local_volumes.as_ref().map(|temp| LocalVolumes {
            folder: temp.path().join("volumes"),
            nodes: vec!["n".into()],
        });
        let controllers = Controllers::start_with(self.cluster.clone(), options).await;
        self.controllers = Some(controllers.unwrap());
    }

    pub(crate) async fn stop_controllers(&mut self) {
        if let Some(controllers) = self.controllers.take() {
            controllers.stop().await;
        }
    }

    pub(crate) async fn add_node(&self, cpu: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": "n", "labels": {"kubernetes.io/hostname": "n"}}});
        self.cluster.nodes().create(&node).await.unwrap();
        self.set_node(cpu).await;
    }

    pub(crate) async fn set_node(&self, cpu: &str) {
        let patch = Patch::merge(json!({"status": {
            "allocatable": {"cpu": cpu, "memory": "1Ti", "pods": "1000"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }}));
        self.cluster
            .nodes()
            .patch_status("n", &patch)
            .await
            .unwrap();
    }

    /// Creates a Job `train` in the namespace `default`.
    pub(crate) async fn job(&self, spec: Value) {
        let mut spec = spec;
        spec["template"] = json!({"spec": {
            "restartPolicy": "Never", "subdomain": "train", "containers": [container()]
        }});
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "train", "namespace": "default"}, "spec": spec,
        });
        self.cluster.create(&job, None).await.unwrap();
    }

    pub(crate) async fn pods(&self) -> Vec<Item<Pod>> {
        self.cluster
            .pods()
            .in_namespace("default")
            .unwrap()
            .list()
            .await
            .unwrap()
            .items
    }

    /// The Job `train`.
    pub(crate) async fn train(&self) -> Item<Job> {
        self.cluster
            .jobs()
            .in_namespace("default")
            .unwrap()
            .fetch("train")
            .await
            .unwrap()
    }

    /// The Job's status.
    pub(crate) async fn status(&self) -> Value {
        self.train().await.raw().unwrap()["status"].clone()
    }

    /// Ends every bound pod that has not ended, with the exit code that `code` returns for it.
    /// Removes the pods that are being deleted.
    pub(crate) async fn end_pods(&self, code: impl Fn(&Item<Pod>) -> Option<i32>) {
        for pod in self.pods().await {
            let raw = pod.raw().unwrap();
            let phase = raw["status"]["phase"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if raw["spec"]["nodeName"].is_null() {
                continue;
            }
            if !matches!(phase.as_str(), "Succeeded" | "Failed")
                && let Some(code) = code(&pod)
            {
                let phase = if code == 0 { "Succeeded" } else { "Failed" };
                let patch = Patch::merge(json!({"status": {
                    "phase": phase,
                    "containerStatuses": [{
                        "name": "main", "image": "i", "imageID": "", "ready": false,
                        "restartCount": 0, "state": {"terminated": {"exitCode": code}},
                    }],
                }}));
                allow_not_found(pod.patch_status(&patch).await.map(|_| ()));
            }
            if pod.meta().deletion_timestamp.is_some() {
                let options = longshore_client::DeleteOptions {
                    grace_seconds: Some(0),
                    uid: Some(pod.uid().to_owned()),
                    ..Default::default()
                };
                allow_not_found(pod.delete(&options).await);
            }
        }
    }

    /// Makes every bound pod ready.
    pub(crate) async fn make_pods_ready(&self) {
        for pod in self.pods().await {
            let raw = pod.raw().unwrap();
            if raw["spec"]["nodeName"].is_null() || raw["status"]["phase"] == "Running" {
                continue;
            }
            let patch = Patch::merge(json!({"status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True",
                                "lastTransitionTime": "2026-01-02T03:04:05Z"}],
            }}));
            allow_not_found(pod.patch_status(&patch).await.map(|_| ()));
        }
    }

    /// Ends pods until the Job has the condition.
    pub(crate) async fn end_pods_until(
        &self,
        condition: &str,
        code: impl Fn(&Item<Pod>) -> Option<i32>,
    ) -> Value {
        until(condition, async || {
            self.end_pods(&code).await;
            let status = self.status().await;
            has_condition(&status, condition).then_some(status)
        })
        .await
    }

    /// The messages of the events with the reason, about one object.
    pub(crate) async fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self
            .cluster
            .events()
            .in_namespace("default")
            .unwrap()
            .list()
            .await
            .unwrap();
        let raw = events.items.iter().map(|event| event.raw().unwrap());
        raw.filter(|event| event["reason"] == reason && event["involvedObject"]["name"] == name)
            .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// An API server with a store of its own.
pub(crate) fn api_server(authorization: longshore_apiserver::AuthorizationMode) -> ApiServer {
    ApiServer::new(longshore_apiserver::Options {
        engine: Engine::open(longshore_engine::Options::default()).unwrap(),
        token: None,
        authorization,
        token_key: None,
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: false,
        warn_unhandled_kinds: false,
    })
}

pub(crate) fn container() -> Value {
    json!({"name": "main", "image": "i", "command": ["true"],
           "resources": {"requests": {"cpu": "100m"}}})
}

pub(crate) fn has_condition(status: &Value, kind: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == kind && c["status"] == "True")
}

fn allow_not_found(result: Result<(), Error>) {
    match result {
        Err(error) if error.is_not_found() || error.is_conflict() => {}
        other => other.unwrap(),
    }
}

/// Retries until the closure returns a value. Fails the test after a minute.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = attempt().await {
            return answer;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "timed out waiting for: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
