//! The loop: watches nodes and pods, and deletes pods whose time has passed.

use std::{collections::HashMap, sync::Arc};

use futures::future;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Patch,
    kinds::{Node, Pod},
};
use longshore_model::time;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::decide::{Stay, evicts, stay};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log and in events.
const NAME: &str = "taint-eviction-controller";
/// The number of workers.
const WORKERS: usize = 8;

/// The state of the controller.
#[derive(Default)]
struct State {
    /// The taints that evict pods, by node. Nodes without such taints are omitted.
    tainted: HashMap<String, Vec<Taint>>,
    /// The pods that will be deleted: their UID, and the time since which they are on a tainted
    /// node.
    waiting: HashMap<Key, (String, Instant)>,
}

struct Controller {
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
    state: Mutex<State>,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let controller = Controller {
        cluster,
        events: events.named(NAME),
        state: Mutex::default(),
        queue: Queue::new(&caches.clock),
        caches: caches.clone(),
    };
    let nodes = feed(NAME, &caches.nodes, |_, change| controller.put_node(change));
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_pod(key, change)
    });
    let feeds = future::join(nodes, pods);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

fn node_of(pod: &Item<Pod>) -> String {
    let node: Option<String> = pod.field(&["spec", "nodeName"]).unwrap_or_default();
    node.unwrap_or_default()
}

impl Controller {
    fn put_node(&self, change: &Change<Node>) {
        let item = change.item();
        let name = item.name();
        let taints: Option<Vec<Taint>> = match change {
            Change::Upsert(item) => item.field(&["spec", "taints"]).unwrap_or_default(),
            Change::Gone(_) => None,
        };
        let mut taints = taints.unwrap_or_default();
        taints.retain(evicts);
        let mut state = self.state.lock();
        let before = match taints.is_empty() {
            true => state.tainted.remove(name),
            false => state.tainted.insert(name.to_owned(), taints.clone()),
        };
        drop(state);
        if before.unwrap_or_default() == taints {
            return;
        }
        for pod in self.caches.pods.items() {
            if node_of(&pod) == name {
                self.queue.add(Key::of(&pod));
            }
        }
    }

    fn put_pod(&self, key: Key, change: &Change<Pod>) {
        let mut state = self.state.lock();
        match change {
            Change::Gone(_) => {
                state.waiting.remove(&key);
            }
            Change::Upsert(item) => {
                if !state.tainted.is_empty() && state.tainted.contains_key(&node_of(item)) {
                    self.queue.add(key);
                }
            }
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(item) = self.caches.pods.get(Some(&key.namespace), &key.name) else {
            return Ok(Next::Done);
        };
        let is_deleting = item.meta().deletion_timestamp.is_some();
        let tolerations: Option<Vec<Toleration>> = item.field(&["spec", "tolerations"])?;
        let time = {
            let state = self.state.lock();
            let taints = state.tainted.get(&node_of(&item));
            let taints = taints.map(Vec::as_slice).unwrap_or_default();
            stay(taints, &tolerations.unwrap_or_default())
        };
        let time = match time {
            Stay::For(time) if !is_deleting => time,
            _ => {
                let known = self.state.lock().waiting.remove(&key);
                if known.is_some() && !is_deleting {
                    self.note(&key, &item, "Cancelling deletion of Pod");
                }
                return Ok(Next::Done);
            }
        };
        let now = self.caches.clock.instant();
        let since = {
            let mut state = self.state.lock();
            let uid = item.uid().to_owned();
            let known = state.waiting.get(&key).filter(|(known, _)| *known == uid);
            let since = known.map_or(now, |(_, since)| *since);
            state.waiting.insert(key.clone(), (uid, since));
            since
        };
        match time.checked_sub(now.duration_since(since)) {
            Some(left) if !left.is_zero() => Ok(Next::After(left + self.caches.clock.margin())),
            _ => {
                self.note(&key, &item, "Marking for deletion Pod");
                self.delete(&item).await?;
                self.state.lock().waiting.remove(&key);
                Ok(Next::Done)
            }
        }
    }

    async fn delete(&self, item: &Item<Pod>) -> Result<(), Error> {
        let namespace = item.namespace().unwrap_or_default();
        let view = self.cluster.pods().in_namespace(namespace)?;
        let patch = Patch::strategic(json!({
            "metadata": {"uid": item.uid()},
            "status": {"conditions": [{
                "type": "DisruptionTarget", "status": "True",
                "reason": "DeletionByTaintManager",
                "message": "Taint manager: deleting due to NoExecute taint",
                "lastTransitionTime": time::seconds(self.caches.clock.now()),
            }]},
        }));
        match view.patch_status(item.name(), &patch).await {
            // The pod was deleted, or another pod has its name.
            Err(error) if error.is_not_found() || error.code() == Some(422) => return Ok(()),
            done => drop(done?),
        }
        let options = DeleteOptions {
            uid: Some(item.uid().to_owned()),
            ..DeleteOptions::default()
        };
        match view.delete(item.name(), &options).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            done => done,
        }
    }

    fn note(&self, key: &Key, item: &Item<Pod>, what: &str) {
        let subject = Subject {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: item.uid().to_owned(),
        };
        let message = format!("{what} {}/{}", key.namespace, key.name);
        self.events
            .record_event(subject, Severity::Normal, "TaintManagerEviction", &message);
    }
}
