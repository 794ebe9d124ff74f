//! The loop: checks all pods at intervals.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_client::{Cluster, DeleteOptions, Error, Item, Patch, kinds::Node};
use longshore_model::time;
use serde_json::{Value, json};

use super::{
    decide::{Cause, Missing, NodeFacts, OUT_OF_SERVICE, decide},
    pod::PodFacts,
};
use crate::{caches::Caches, concurrent::all, key::Key};

/// The maximum number of finished pods, as in Kubernetes.
const MAX_FINISHED: usize = 12_500;

/// The interval of the collection, and the time after which a missing node counts as deleted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) interval: Duration,
    pub(crate) missing_node: Duration,
}

impl Default for Pace {
    /// Returns the values of Kubernetes.
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(20),
            missing_node: Duration::from_secs(40),
        }
    }
}

/// Runs the collector until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, pace: Pace) {
    let mut missing = Missing::default();
    let mut known = HashMap::new();
    let mut begin = caches.clock.instant();
    loop {
        let sleep = (caches.clock).sleep_before_work(begin, pace.interval, "pod-gc");
        let _busy = sleep.await;
        begin = caches.clock.instant();
        let pods = pods(&caches, &mut known);
        let exists = |name: &str| caches.nodes.get(None, name).is_some();
        let mut gone = Vec::new();
        for node in missing.nodes(&pods, exists, pace.missing_node, begin) {
            // The cache may be out of date.
            match cluster.nodes().find(&node).await {
                Ok(None) => gone.push(node),
                Ok(Some(_)) => {}
                Err(Error::Closed) => return,
                Err(error) => tracing::debug!(%error, node, "cannot read a node"),
            }
        }
        let node = |name: &str| caches.nodes.get(None, name).map(|node| facts(&node));
        let delete = decide(&pods, node, &gone, MAX_FINISHED);
        let requests = delete
            .iter()
            .map(|(pod, cause)| remove(&cluster, pod, *cause, caches.clock.now()));
        match all(requests.collect()).await {
            Err(Error::Closed) => return,
            Err(error) => tracing::debug!(%error, "cannot delete a pod"),
            Ok(()) => {}
        }
    }
}

/// Returns the fields of all pods. Only pods that have changed are read again.
fn pods(caches: &Caches, known: &mut HashMap<Key, PodFacts>) -> Vec<PodFacts> {
    let items = caches.pods.items();
    let pods = items.iter().filter_map(|item| {
        let before = known.remove(&Key::of(item));
        let same = before.filter(|pod| pod.uid == item.uid() && pod.version == item.version());
        same.map_or_else(|| PodFacts::of(item), Ok).ok()
    });
    let pods: Vec<PodFacts> = pods.collect();
    *known = pods
        .iter()
        .map(|pod| (pod.key.clone(), pod.clone()))
        .collect();
    pods
}

fn facts(node: &Item<Node>) -> NodeFacts {
    let raw = node.raw().unwrap_or_default();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_ready = list(&raw["status"]["conditions"])
        .iter()
        .any(|one| one["type"] == "Ready" && one["status"] == "True");
    let is_tainted = list(&raw["spec"]["taints"])
        .iter()
        .any(|taint| taint["key"] == OUT_OF_SERVICE);
    NodeFacts {
        out_of_service: is_tainted && !is_ready,
    }
}

/// Marks a pod as failed, because no node will do so, and deletes it.
async fn remove(
    cluster: &Cluster,
    pod: &PodFacts,
    cause: Cause,
    now: Timestamp,
) -> Result<(), Error> {
    let view = cluster.pods().in_namespace(&pod.key.namespace)?;
    if !pod.ended {
        let mut status = json!({"phase": "Failed"});
        if cause == Cause::NoNode {
            status["conditions"] = json!([{
                "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": time::seconds(now),
            }]);
        }
        let patch = Patch::strategic(json!({"metadata": {"uid": pod.uid}, "status": status}));
        match view.patch_status(&pod.key.name, &patch).await {
            // The pod was deleted, or another pod has its name.
            Err(error) if error.is_not_found() || error.code() == Some(422) => return Ok(()),
            done => drop(done?),
        }
    }
    let options = DeleteOptions {
        grace_seconds: Some(0),
        uid: Some(pod.uid.clone()),
        ..DeleteOptions::default()
    };
    match view.delete(&pod.key.name, &options).await {
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        done => done,
    }
}
