//! The loop: watches Deployments, ReplicaSets and pods, and executes plans.

use std::{sync::Arc, time::Duration};

use futures::future;
use longshore_client::{
    Change, Cluster, Error, Item,
    kinds::{Any, Pod},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    facts::{Deployment, ReplicaSet},
    plan::{Observed, plan},
    requests::Requests,
    store::Store,
};
use crate::{
    caches::Caches,
    events::Recorder,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "deployment";
/// The number of workers.
const WORKERS: usize = 5;

struct Controller {
    requests: Requests,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let deployments = caches.of("apps", "Deployment");
    let Some((deployments, sets)) = deployments.zip(caches.of("apps", "ReplicaSet")) else {
        return;
    };
    let view = |kind: &Arc<_>| cluster.view_of::<Any>(Arc::clone(kind));
    let controller = Controller {
        requests: Requests {
            deployments: view(&deployments.0),
            sets: view(&sets.0),
            events: events.named("deployment-controller"),
            store: Mutex::default(),
        },
        queue: Queue::new(&caches.clock),
    };
    let deployments = feed(NAME, &deployments.1, |key, change| {
        controller.put(key, change);
    });
    let sets = feed(NAME, &sets.1, |key, change| {
        controller.put_set(&key, change);
    });
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_pod(&key, change);
    });
    let feeds = future::join3(deployments, sets, pods);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.requests.store.lock()
    }

    fn put(&self, key: Key, change: &Change<Any>) {
        match change {
            Change::Upsert(item) => match Deployment::of(item) {
                Ok(deployment) => self.store().put(deployment),
                Err(error) => tracing::warn!(?key, %error, "cannot read a Deployment"),
            },
            Change::Gone(item) => self.store().remove(&key, item.uid()),
        }
        self.queue.add(key);
    }

    fn put_set(&self, key: &Key, change: &Change<Any>) {
        let affected = match change {
            Change::Upsert(item) => match ReplicaSet::of(item) {
                Ok(set) => self.store().put_set(set),
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a ReplicaSet");
                    return;
                }
            },
            Change::Gone(item) => self.store().remove_set(key, item.uid()),
        };
        affected.into_iter().for_each(|key| self.queue.add(key));
    }

    fn put_pod(&self, key: &Key, change: &Change<Pod>) {
        let item = change.item();
        let set = match change {
            Change::Upsert(item) => running(item),
            Change::Gone(_) => None,
        };
        let waiting = self.store().put_pod(key, item.uid(), set);
        waiting.into_iter().for_each(|key| self.queue.add(key));
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.store().snapshot(&key) else {
            return Ok(Next::Done);
        };
        let deployment = &*snapshot.deployment;
        if !snapshot.adopt.is_empty() || !snapshot.release.is_empty() {
            self.requests
                .claim(deployment, &snapshot.adopt, &snapshot.release)
                .await?;
            return Ok(Next::After(Duration::ZERO));
        }
        let now = self.queue.clock().now();
        let plan = plan(Observed {
            deployment,
            sets: snapshot.owned,
            running: &snapshot.running,
            now,
        });
        for (old, new) in &plan.update {
            self.requests.update(deployment, old, new).await?;
        }
        if let Some(set) = &plan.create {
            return self.requests.create(deployment, set, now).await;
        }
        for set in &plan.delete {
            self.requests.delete(set).await?;
        }
        self.requests
            .store_status(deployment, plan.revision.as_deref(), plan.status)
            .await?;
        Ok(plan.requeue_after.map_or(Next::Done, Next::After))
    }
}

/// Returns the name and UID of the ReplicaSet of a pod that has not ended.
fn running(item: &Item<Pod>) -> Option<(String, String)> {
    let owner = item.meta().controller();
    let owner = owner.filter(|owner| owner.kind == "ReplicaSet")?;
    let phase: Option<String> = item.field(&["status", "phase"]).ok().flatten();
    let ended = matches!(phase.as_deref(), Some("Succeeded" | "Failed"));
    (!ended).then(|| (owner.name.clone(), owner.uid.clone()))
}
