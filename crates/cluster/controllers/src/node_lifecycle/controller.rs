//! The loop: checks the nodes at intervals and after their changes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Taint;
use longshore_client::{
    Cache, Cluster, Error, Item, Patch,
    kinds::{Any, Node},
};
use longshore_clock::Clock;
use longshore_model::time;
use serde_json::json;
use tokio::time::sleep;

use super::{
    facts::NodeFacts,
    health::{Health, Limits},
    taints::desired,
};
use crate::{
    caches::Caches,
    concurrent::all,
    events::{Recorder, Severity, Subject},
};

/// The name of the controller, for the clock.
const NAME: &str = "node-lifecycle";
/// The namespace of the Leases of nodes.
const LEASES: &str = "kube-node-lease";
/// The conditions that are unknown if a node does not report.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The interval of the checks, and the limits for silent nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) interval: Duration,
    pub(crate) running: Duration,
    pub(crate) starting: Duration,
}

impl Default for Pace {
    /// Returns the values of Kubernetes.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            running: Duration::from_secs(50),
            starting: Duration::from_secs(60),
        }
    }
}

struct Controller {
    cluster: Cluster,
    caches: Arc<Caches>,
    leases: Cache<Any>,
    events: Recorder,
    limits: Limits,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder, pace: Pace) {
    let Some((_, leases)) = caches.of("coordination.k8s.io", "Lease") else {
        return;
    };
    let controller = Controller {
        cluster,
        leases: leases.clone(),
        events: events.named("node-controller"),
        limits: Limits {
            running: pace.running,
            starting: pace.starting,
        },
        caches: caches.clone(),
    };
    let mut changes = caches.nodes.subscribe();
    let mut health = Health::default();
    let mut busy = caches.clock.busy(NAME);
    loop {
        let begin = caches.clock.instant();
        match controller.pass(&mut health).await {
            Err(Error::Closed) => return,
            Err(error) => tracing::debug!(%error, "cannot update a node"),
            Ok(()) => {}
        }
        drop(busy);
        tokio::select! {
            resumed = caches.clock.sleep_before_work(begin, pace.interval, NAME) => busy = resumed,
            change = changes.next() => {
                if change.is_none() {
                    return;
                }
                busy = caches.clock.busy(NAME);
                // Waits for reports of other nodes, because many nodes report at the same time.
                let count = u64::try_from(caches.nodes.len()).unwrap_or(u64::MAX);
                sleep(Duration::from_millis(count / 10)).await;
                while changes.try_next().is_some() {}
            }
        }
    }
}

impl Controller {
    /// Checks all nodes once.
    async fn pass(&self, health: &mut Health) -> Result<(), Error> {
        let now = self.caches.clock.instant();
        self.caches.clock.heartbeats().await;
        let items = self.caches.nodes.items();
        health.retain(|name| self.caches.nodes.get(None, name).is_some());
        let mut nodes = Vec::new();
        for item in &items {
            let mut node = NodeFacts::of(item)?;
            let silent = health.is_silent(&node, self.renewed(&node.name), self.limits, now);
            if silent && node.ready() != "Unknown" {
                // The cache may be out of date.
                let renewed = self.renewed_now(&node.name).await?;
                if !health.is_silent(&node, renewed, self.limits, now) {
                    nodes.push(node);
                    continue;
                }
                match self.mark_unknown(item, &node).await {
                    Ok(marked) => node = marked,
                    // The node has reported in the meantime.
                    Err(error) if error.is_conflict() || error.is_not_found() => continue,
                    Err(error) => return Err(error),
                }
            }
            nodes.push(node);
        }
        taint_by_conditions(&self.cluster, &nodes, &self.caches.clock).await
    }

    /// Returns the time at which a node last renewed its Lease.
    fn renewed(&self, node: &str) -> Option<String> {
        let lease = self.leases.get(Some(LEASES), node)?;
        lease.field(&["spec", "renewTime"]).ok()?
    }

    /// Like [`Controller::renewed`], but asks the API server.
    async fn renewed_now(&self, node: &str) -> Result<Option<String>, Error> {
        let leases = self.cluster.leases().in_namespace(LEASES)?;
        match leases.find(node).await? {
            Some(lease) => lease.field(&["spec", "renewTime"]),
            None => Ok(None),
        }
    }

    /// Sets the conditions of a node that does not report, and the conditions of its pods.
    async fn mark_unknown(&self, item: &Item<Node>, node: &NodeFacts) -> Result<NodeFacts, Error> {
        let mut object = item.raw()?;
        let now = time::seconds(self.caches.clock.now());
        let status = &mut object["status"];
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        if let Some(conditions) = status["conditions"].as_array_mut() {
            for kind in REPORTED {
                match conditions.iter_mut().find(|one| one["type"] == kind) {
                    None => conditions.push(json!({
                        "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                        "message": "Kubelet never posted node status.",
                        "lastHeartbeatTime": node.created.map(time::seconds),
                        "lastTransitionTime": now,
                    })),
                    Some(one) if one["status"] != "Unknown" => {
                        one["status"] = "Unknown".into();
                        one["reason"] = "NodeStatusUnknown".into();
                        one["message"] = "Kubelet stopped posting node status.".into();
                        one["lastTransitionTime"] = now.as_str().into();
                    }
                    Some(_) => {}
                }
            }
        }
        let marked = self
            .cluster
            .nodes()
            .replace_status(&node.name, &object)
            .await?;
        if node.ready() == "True" {
            let subject = Subject {
                api_version: "v1".into(),
                kind: "Node".into(),
                // Events about objects without a namespace are in this namespace.
                namespace: "default".to_owned(),
                name: node.name.clone(),
                uid: node.uid.clone(),
            };
            let text = format!("Node {} status is now: NodeNotReady", node.name);
            self.events
                .record_event(subject, Severity::Normal, "NodeNotReady", &text);
            self.mark_pods_not_ready(&node.name, &now).await?;
        }
        NodeFacts::of(&marked)
    }

    async fn mark_pods_not_ready(&self, node: &str, now: &str) -> Result<(), Error> {
        let pods = self.caches.pods.items();
        let requests = pods.iter().filter_map(|pod| {
            let raw = pod.raw().ok()?;
            let conditions = raw["status"]["conditions"].as_array();
            let is_ready = conditions
                .into_iter()
                .flatten()
                .any(|one| one["type"] == "Ready" && one["status"] == "True");
            let affected = is_ready && raw["spec"]["nodeName"] == node;
            affected.then(async || {
                let patch = Patch::strategic(json!({
                    "metadata": {"uid": pod.uid()},
                    "status": {"conditions": [
                        {"type": "Ready", "status": "False", "lastTransitionTime": now},
                    ]},
                }));
                match pod.patch_status(&patch).await {
                    Err(error) if error.is_not_found() || error.code() == Some(422) => {
                        return Ok(());
                    }
                    done => drop(done?),
                }
                let subject = Subject {
                    api_version: "v1".into(),
                    kind: "Pod".into(),
                    namespace: pod.namespace().unwrap_or_default().to_owned(),
                    name: pod.name().to_owned(),
                    uid: pod.uid().to_owned(),
                };
                let text = "Node is not ready";
                self.events
                    .record_event(subject, Severity::Warning, "NodeNotReady", text);
                Ok(())
            })
        });
        all(requests.collect()).await
    }
}

/// Sets the taints of all nodes by their current conditions. The controller does this after its
/// start, and a new node has a taint until then although it is ready.
///
/// # Errors
/// The nodes cannot be listed, or a node cannot be changed.
pub async fn taint_nodes(cluster: &Cluster, clock: &Clock) -> Result<(), Error> {
    let listed = cluster.nodes().list().await?.items;
    let nodes: Result<Vec<_>, _> = listed.iter().map(NodeFacts::of).collect();
    taint_by_conditions(cluster, &nodes?, clock).await
}

async fn taint_by_conditions(
    cluster: &Cluster,
    nodes: &[NodeFacts],
    clock: &Clock,
) -> Result<(), Error> {
    let evict = nodes.iter().any(|node| node.ready() == "True");
    let now = time::seconds(clock.now());
    for node in nodes {
        if let Some(taints) = desired(node, evict, &now) {
            taint(cluster, node, &taints).await?;
        }
    }
    Ok(())
}

/// Replaces the taints of a node unless the node has changed.
async fn taint(cluster: &Cluster, node: &NodeFacts, taints: &[Taint]) -> Result<(), Error> {
    let patch = Patch::merge(json!({
        "metadata": {"uid": node.uid, "resourceVersion": node.version},
        "spec": {"taints": taints},
    }));
    match cluster.nodes().patch(&node.name, &patch).await {
        // The node was deleted or has changed. The cache will report it.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        done => done.map(drop),
    }
}
