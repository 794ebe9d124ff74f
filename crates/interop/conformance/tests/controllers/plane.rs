//! The control plane under test, with the nodes and the namespace of a test.

use std::{
    collections::BTreeSet,
    ops::Deref,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    kubelet::{Kubelet, renew},
    objects::list,
};

/// The timeout for an action of a controller.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The interval at which the state is read.
const INTERVAL: Duration = Duration::from_millis(50);

/// A test's view of the control plane.
pub(crate) struct Plane {
    test: Arc<ApiTest>,
    /// The nodes with a kubelet.
    nodes: Arc<Mutex<BTreeSet<String>>>,
    /// The kubelets. They stop when this is dropped.
    _kubelets: JoinSet<()>,
}

impl Deref for Plane {
    type Target = ApiTest;

    fn deref(&self) -> &ApiTest {
        &self.test
    }
}

impl Plane {
    /// Finds the control plane, and waits for the service account of the test's namespace.
    pub(crate) async fn start() -> Self {
        let test = Arc::new(ApiTest::with_controllers().await);
        let nodes = Arc::default();
        let mut kubelets = JoinSet::new();
        kubelets.spawn(Kubelet::new(test.clone(), Arc::clone(&nodes)).run());
        let plane = Self {
            test,
            nodes,
            _kubelets: kubelets,
        };
        let accounts = plane.path("v1", "serviceaccounts");
        plane
            .until(&format!("{accounts}/default"), |account| {
                account["kind"] == "ServiceAccount"
            })
            .await;
        plane
    }

    /// Like [`Plane::start`], with a number of nodes: `0`, `1`, …
    pub(crate) async fn with_nodes(count: usize) -> Self {
        let plane = Self::start().await;
        for number in 0..count {
            plane.add_node(&number.to_string(), &json!({})).await;
        }
        plane
    }

    /// The name of a node.
    pub(crate) fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace())
    }

    /// The path of a node.
    pub(crate) fn node_path(&self, name: &str) -> String {
        format!("/api/v1/nodes/{}", self.node(name))
    }

    /// Adds a ready node with 4 CPUs, and waits until the control plane knows that it is ready.
    /// `change` is merged into it.
    pub(crate) async fn add_node(&self, name: &str, change: &Value) {
        let full = self.node(name);
        let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let mut node = json!({
            "metadata": {"name": full, "labels": {
                "test": self.namespace(), "kubernetes.io/hostname": full,
            }},
            "spec": {},
            "status": {
                "capacity": resources, "allocatable": resources,
                "conditions": [ready("True")],
            },
        });
        merge(&mut node, change);
        self.nodes.lock().unwrap().insert(full.clone());
        renew(&self.test, &full).await;
        self.create("/api/v1/nodes", &node).await;
        self.until(&self.node_path(name), |node| {
            let mut taints = list(node, "/spec/taints").iter();
            !taints.any(|taint| taint["key"] == "node.kubernetes.io/not-ready")
        })
        .await;
    }

    /// Reports whether a node is ready.
    pub(crate) async fn set_node_ready(&self, name: &str, status: &str) {
        let patch = json!({"status": {"conditions": [ready(status)]}});
        let path = format!("{}/status", self.node_path(name));
        self.patch(&path, PatchType::Strategic, &patch).await.ok();
    }

    /// Stops the kubelet of a node.
    pub(crate) fn silence(&self, name: &str) {
        self.nodes.lock().unwrap().remove(&self.node(name));
    }

    /// Reads a path until the response is as expected; returns it.
    pub(crate) async fn until(&self, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let response = self.get(path).await.json();
            if is_right(&response) {
                return response;
            }
            assert!(begin.elapsed() < TIMEOUT, "timed out: {path}: {response:#}");
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Reads a collection until its items are as expected; returns them.
    pub(crate) async fn until_items(
        &self,
        path: &str,
        are_right: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let list = self
            .until(path, |response| {
                response["items"].is_array() && are_right(list(response, "/items"))
            })
            .await;
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until an object does not exist.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, |response| response["code"] == 404).await;
    }

    /// The pods with a label `app`.
    pub(crate) fn pods_of(&self, app: &str) -> String {
        format!("{}?labelSelector=app%3D{app}", self.path("v1", "pods"))
    }

    /// Changes an object by a merge patch; returns it.
    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Value {
        self.patch(path, PatchType::Merge, patch).await.ok()
    }
}

fn ready(status: &str) -> Value {
    json!({"type": "Ready", "status": status, "reason": "Test", "message": "test"})
}

/// Merges the fields of an object into another.
fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (name, value) in change {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}
