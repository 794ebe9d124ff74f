//! Acts as the agents of nodes: keeps the nodes ready, and reports pods as ready or deleted.

use std::{collections::HashSet, time::Duration};

use futures::future::join_all;
use http::Method;
use kube_client::Client;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::{
    report::Failure,
    server::{JSON, MERGE, Watch, send},
};

const NODES: usize = 8;
const RENEWAL: Duration = Duration::from_secs(10);
/// The pause after a request that failed.
const RETRY: Duration = Duration::from_millis(100);
const PODS: &str = "/api/v1/namespaces/default/pods";
/// The number of concurrent requests.
const CONCURRENCY: usize = 32;

/// Dropping this stops the agents.
pub(super) struct Agents(Vec<AbortHandle>);

impl Drop for Agents {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// The labels of the nodes.
pub(super) fn labels() -> Value {
    json!({"example.com/bench": "true"})
}

impl Agents {
    /// Creates the nodes.
    pub(super) async fn start(client: &Client) -> Result<Self, Failure> {
        let names: Vec<_> = (0..NODES).map(|index| format!("bench-{index}")).collect();
        for name in &names {
            let node = json!({"metadata": {"name": name, "labels": labels()}});
            send(
                client,
                Method::POST,
                "/api/v1/nodes",
                JSON,
                node.to_string(),
            )
            .await?;
            let room = json!({"cpu": "1000", "memory": "1Ti", "pods": "2000"});
            let status = json!({"status": {
                "capacity": room, "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            }});
            let path = format!("/api/v1/nodes/{name}/status");
            send(client, Method::PATCH, &path, MERGE, status.to_string()).await?;
        }
        let (started, first) = tokio::sync::oneshot::channel();
        let renew = tokio::spawn(renew(client.clone(), names.clone(), started));
        first.await?;
        // Controllers add taints to new nodes, and remove them after the first status.
        for name in &names {
            let untainted = json!({"spec": {"taints": null}});
            let path = format!("/api/v1/nodes/{name}");
            send(client, Method::PATCH, &path, MERGE, untainted.to_string()).await?;
        }
        let pods = tokio::spawn(report(client.clone()));
        Ok(Self(vec![renew.abort_handle(), pods.abort_handle()]))
    }
}

/// Renews the nodes' Leases.
async fn renew(client: Client, names: Vec<String>, started: tokio::sync::oneshot::Sender<()>) {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let mut started = Some(started);
    loop {
        let now = k8s_openapi::jiff::Timestamp::now();
        let now = format!("{now:.6}");
        let renewals = names.iter().map(|name| {
            let spec =
                json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now});
            let lease = json!({"metadata": {"name": name}, "spec": spec}).to_string();
            let client = &client;
            async move {
                let path = format!("{LEASES}/{name}");
                let patched = send(client, Method::PATCH, &path, MERGE, lease.clone());
                let exists = patched.await.is_ok();
                if !exists {
                    let _ = send(client, Method::POST, LEASES, JSON, lease).await;
                }
            }
        });
        join_all(renewals).await;
        if let Some(started) = started.take() {
            let _ = started.send(());
        }
        tokio::time::sleep(RENEWAL).await;
    }
}

/// The request of an agent for a pod.
enum Step {
    Ready(String),
    Delete(String),
}

/// Reports scheduled pods as ready, and deletes terminating pods.
async fn report(client: Client) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(receiver));
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, receiver) = (client.clone(), receiver.clone());
        workers.spawn(async move {
            loop {
                let step = receiver.lock().await.recv().await;
                let Some(step) = step else { return };
                while !act(&client, &step).await {
                    tokio::time::sleep(RETRY).await;
                }
            }
        });
    }
    let (mut ready, mut deleted) = (HashSet::new(), HashSet::new());
    // A server may end a watch at any time, for example a slow client's. The next watch begins with
    // all pods.
    let mut watch = None;
    loop {
        let Some(open) = &mut watch else {
            watch = Watch::open(&client, PODS, "").await.ok();
            if watch.is_none() {
                tokio::time::sleep(RETRY).await;
            }
            continue;
        };
        let Ok(Some(event)) = open.next().await else {
            watch = None;
            continue;
        };
        let pod = &event["object"];
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if event["type"] == "DELETED" || !pod["spec"]["nodeName"].is_string() {
            continue;
        }
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if deleted.insert(name.to_owned()) {
                let _ = sender.send(Step::Delete(name.to_owned()));
            }
        } else if ready.insert(name.to_owned()) {
            let _ = sender.send(Step::Ready(name.to_owned()));
        }
    }
}

/// Returns true if the step is done. A deleted pod needs no further steps.
async fn act(client: &Client, step: &Step) -> bool {
    let answer = match step {
        Step::Ready(name) => {
            let condition = |kind: &str| json!({"type": kind, "status": "True"});
            let kinds = ["Initialized", "Ready", "ContainersReady", "PodScheduled"];
            let status = json!({"status": {
                "phase": "Running",
                "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                "conditions": kinds.map(condition),
                "containerStatuses": [{
                    "name": "main", "ready": true, "started": true, "restartCount": 0,
                    "image": "registry.example.com/web:1.2.3", "imageID": "",
                    "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
                }],
            }});
            let path = format!("{PODS}/{name}/status");
            send(client, Method::PATCH, &path, MERGE, status.to_string()).await
        }
        Step::Delete(name) => {
            let path = format!("{PODS}/{name}");
            let now = json!({"gracePeriodSeconds": 0}).to_string();
            send(client, Method::DELETE, &path, JSON, now).await
        }
    };
    match answer {
        Ok(_) => true,
        Err(error) => error.to_string().contains("404 Not Found"),
    }
}
