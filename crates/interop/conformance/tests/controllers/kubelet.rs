//! Acts as the kubelets of a test's nodes: renews their Leases, and reports the states of their
//! pods according to an annotation of the pods.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use longshore_conformance::{ApiTest, PatchType};
use serde_json::{Value, json};

use crate::objects::{holds, list, name, text};

/// The annotation with the behaviour of a pod: `ready`, which is the default, `unready`, `hold`
/// (its containers do not start), `succeed`, `fail`, `fail-CODE`, or `linger` (it is ready, and
/// does not end when it is deleted).
pub(crate) const BEHAVIOR: &str = "test/behavior";
/// The interval at which pods are read.
const INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which Leases are renewed.
const RENEWAL: Duration = Duration::from_secs(5);

/// The kubelets of a test.
pub(crate) struct Kubelet {
    test: Arc<ApiTest>,
    /// The nodes whose Leases are renewed.
    nodes: Arc<Mutex<BTreeSet<String>>>,
}

impl Kubelet {
    /// Creates the kubelets of the test's nodes.
    pub(crate) fn new(test: Arc<ApiTest>, nodes: Arc<Mutex<BTreeSet<String>>>) -> Self {
        Self { test, nodes }
    }

    fn nodes(&self) -> BTreeSet<String> {
        self.nodes.lock().unwrap().clone()
    }

    /// Runs until the future is dropped.
    pub(crate) async fn run(self) {
        let mut renewed: Option<Instant> = None;
        let pods = self.test.path("v1", "pods");
        loop {
            if renewed.is_none_or(|at| at.elapsed() >= RENEWAL) {
                for node in self.nodes() {
                    renew(&self.test, &node).await;
                }
                renewed = Some(Instant::now());
            }
            let response = self.test.get(&pods).await;
            if response.code == 200 {
                let nodes = self.nodes();
                for pod in list(&response.json(), "/items") {
                    if nodes.contains(text(pod, "/spec/nodeName")) {
                        self.report(&format!("{pods}/{}", name(pod)), pod).await;
                    }
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn report(&self, path: &str, pod: &Value) {
        let phase = text(pod, "/status/phase");
        let is_done = ["Succeeded", "Failed"].contains(&phase);
        let behavior = pod["metadata"]["annotations"][BEHAVIOR].as_str();
        let behavior = behavior.unwrap_or("ready");
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if behavior == "linger" {
                return;
            }
            if !is_done {
                let status = status(pod, "Failed", 137);
                self.patch_status(path, &status).await;
            }
            let options = json!({
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": pod["metadata"]["uid"]},
            });
            // The pod is already deleted, or kept by finalizers.
            self.test.delete_with(path, &options).await;
            return;
        }
        let code = behavior
            .strip_prefix("fail")
            .map(|code| code.trim_start_matches('-').parse().unwrap_or(1));
        let wanted = match (behavior, code) {
            ("hold", _) => return,
            (_, Some(code)) => status(pod, "Failed", code),
            ("succeed", _) => status(pod, "Succeeded", 0),
            ("ready" | "linger", _) if phase == "Running" && holds(pod, "Ready") => return,
            ("unready", _) if phase == "Running" && !holds(pod, "Ready") => return,
            (behavior, _) => running(pod, behavior != "unready"),
        };
        if !is_done {
            self.patch_status(path, &wanted).await;
        }
    }

    async fn patch_status(&self, path: &str, status: &Value) {
        let patch = json!({"status": status});
        let path = format!("{path}/status");
        let response = self.test.patch(&path, PatchType::Strategic, &patch).await;
        // The pod may be deleted.
        assert!(
            [200, 404, 409].contains(&response.code),
            "{}",
            response.text()
        );
    }
}

/// Renews the Lease of a node.
pub(crate) async fn renew(test: &ApiTest, node: &str) {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let now = Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%6fZ")
        .to_string();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now},
    });
    let path = format!("{leases}/{node}?fieldManager=kubelet&force=true");
    let response = test.patch(&path, PatchType::Apply, &lease).await;
    assert!([200, 201].contains(&response.code), "{}", response.text());
}

fn condition(kind: &str, holds: bool) -> Value {
    let status = if holds { "True" } else { "False" };
    json!({"type": kind, "status": status, "lastTransitionTime": now()})
}

/// The current time in seconds.
fn now() -> String {
    longshore_model::time::seconds(Timestamp::now())
}

/// An address that no other pod of this process has.
fn address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id() % 100;
    format!(
        "10.{}.{}.{}",
        100 + process,
        number / 250 % 250,
        number % 250 + 1
    )
}

fn containers(pod: &Value, state: &Value, is_ready: bool) -> Vec<Value> {
    let containers = list(pod, "/spec/containers").iter();
    let status = containers.map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "ready": is_ready, "started": true, "restartCount": 0, "state": state,
        })
    });
    status.collect()
}

/// The status of a pod whose containers run.
fn running(pod: &Value, is_ready: bool) -> Value {
    let mut status = json!({
        "phase": "Running",
        "conditions": [
            condition("Initialized", true),
            condition("Ready", is_ready),
            condition("ContainersReady", is_ready),
        ],
        "containerStatuses": containers(pod, &json!({"running": {"startedAt": now()}}), is_ready),
    });
    if pod["status"]["startTime"].is_null() {
        status["startTime"] = json!(now());
    }
    if pod["status"]["podIP"].is_null() {
        let address = address();
        status["podIPs"] = json!([{"ip": address}]);
        status["podIP"] = json!(address);
    }
    status
}

/// The status of a pod whose containers exited.
fn status(pod: &Value, phase: &str, code: i32) -> Value {
    let state = json!({"terminated": {
        "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": now(), "finishedAt": now(),
    }});
    let mut status = json!({
        "phase": phase,
        "conditions": [condition("Ready", false), condition("ContainersReady", false)],
        "containerStatuses": containers(pod, &state, false),
    });
    if pod["status"]["startTime"].is_null() {
        status["startTime"] = json!(now());
    }
    status
}
