//! The loop: watches nodes and sets their annotation.

use std::sync::Arc;

use longshore_client::{Change, Cluster, Error, Patch, kinds::Node};
use parking_lot::Mutex;
use serde_json::json;

use super::decide::Ttl;
use crate::{
    caches::Caches,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "ttl";
/// The number of workers.
const WORKERS: usize = 2;
const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

struct Controller {
    cluster: Cluster,
    caches: Arc<Caches>,
    ttl: Mutex<Ttl>,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>) {
    let controller = Controller {
        cluster,
        caches: caches.clone(),
        ttl: Mutex::default(),
        queue: Queue::new(&caches.clock),
    };
    let feed = feed(NAME, &caches.nodes, |key, change| {
        controller.put(key, change);
    });
    let reconcile = async |key: Key| controller.reconcile(&key).await;
    reconcile::run(NAME, WORKERS, &controller.queue, feed, reconcile).await;
}

impl Controller {
    /// Changes a node's annotation. As in Kubernetes, the other nodes get a new time with their
    /// next report.
    fn put(&self, key: Key, change: &Change<Node>) {
        self.ttl.lock().set_nodes(self.caches.nodes.len());
        if matches!(change, Change::Upsert(_)) {
            self.queue.add(key);
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(node) = self.caches.nodes.get(None, &key.name) else {
            return Ok(Next::Done);
        };
        let wanted = self.ttl.lock().seconds();
        let current = node.meta().annotations.get(ANNOTATION);
        if current.and_then(|text| text.parse().ok()) == Some(wanted) {
            return Ok(Next::Done);
        }
        let patch = json!({"metadata": {"annotations": {ANNOTATION: wanted.to_string()}}});
        let nodes = self.cluster.nodes();
        match nodes.patch(&key.name, &Patch::strategic(patch)).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Next::Done),
        }
    }
}
