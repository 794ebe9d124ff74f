//! The loop: watches sets and pods, and executes decisions.

use std::sync::Arc;

use futures::future;
use longshore_client::{
    Change, Cluster, Error, Item,
    kinds::{Any, Pod},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    claim::claim,
    counts,
    flavor::Flavor,
    plan::{Scale, scale},
    requests::Requests,
    set::Set,
    store::Store,
};
use crate::{
    caches::Caches,
    events::Recorder,
    key::Key,
    pod_facts::PodFacts,
    pod_facts::next_available,
    queue::{Next, Queue},
    reconcile::{self, feed},
    refusal::message,
};

/// The number of workers.
const WORKERS: usize = 5;

struct Controller {
    requests: Requests,
    queue: Queue<Key>,
}

/// Runs the controller of a kind until its cluster is closed.
pub(crate) async fn run(
    flavor: &'static Flavor,
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
) {
    let Some((kind, cache)) = caches.of(flavor.group, flavor.kind) else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            flavor,
            sets: cluster.view_of::<Any>(kind.clone()),
            cluster,
            events: events.named(flavor.component),
            store: Mutex::default(),
        },
        queue: Queue::new(&caches.clock),
    };
    let sets = feed(flavor.what, cache, |key, change| {
        controller.put_set(key, change);
    });
    let pods = feed(flavor.what, &caches.pods, |key, change| {
        controller.put_pod(&key, change);
    });
    let feeds = future::join(sets, pods);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(flavor.what, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.requests.store.lock()
    }

    fn put_set(&self, key: Key, change: &Change<Any>) {
        match change {
            Change::Upsert(item) => match Set::of(self.requests.flavor, item) {
                Ok(set) => self.store().put(set),
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a ReplicaSet or ReplicationController")
                }
            },
            Change::Gone(item) => self.store().remove(&key, item.uid()),
        }
        self.queue.add(key);
    }

    fn put_pod(&self, key: &Key, change: &Change<Pod>) {
        let affected = match change {
            Change::Upsert(item) if self.is_ours(item) => match PodFacts::read(item) {
                Ok(pod) => self.store().put_pod(pod),
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a pod");
                    return;
                }
            },
            Change::Upsert(item) | Change::Gone(item) => self.store().remove_pod(key, item.uid()),
        };
        affected.into_iter().for_each(|set| self.queue.add(set));
    }

    /// Returns true if a pod has no controller or a controller of this kind.
    fn is_ours(&self, item: &Item<Pod>) -> bool {
        let owner = item.meta().controller();
        owner.is_none_or(|owner| {
            owner.kind == self.requests.flavor.kind
                && owner.api_version == self.requests.flavor.api_version
        })
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.store().snapshot(&key) else {
            return Ok(Next::Done);
        };
        let set = &*snapshot.set;
        let claims = claim(set, &snapshot.pods);
        let mut changed = Ok(());
        if !claims.adopt.is_empty() {
            changed = self.requests.adopt(set, &claims.adopt).await;
        }
        for pod in &claims.release {
            changed = changed.and(self.requests.release(set, pod).await);
        }
        changed?;
        let mut active = claims.owned;
        active.extend(claims.adopt);
        let related = if active.len() > set.replicas {
            self.store().related(set)
        } else {
            Vec::new()
        };
        let related: Vec<&PodFacts> = related.iter().collect();
        let now = self.queue.clock().now();
        let scaled = match scale(set, &active, &related, now) {
            Scale::Keep => Ok(()),
            Scale::Create(count) => self.requests.create(set, count).await,
            Scale::Delete(pods) => self.requests.delete(set, &pods).await,
        };
        let failure = scaled.as_ref().err().map(message);
        let status = counts::status(
            self.requests.flavor,
            set,
            &active,
            claims.terminating,
            failure.as_deref(),
            now,
        );
        self.requests.store_status(set, &status).await?;
        scaled?;
        let wait = next_available(active.iter().copied(), set.min_ready_seconds, now);
        Ok(wait.map_or(Next::Done, |wait| {
            Next::After(wait + self.queue.clock().margin())
        }))
    }
}
