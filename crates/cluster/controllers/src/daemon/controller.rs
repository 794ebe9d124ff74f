//! The loop: watches DaemonSets, nodes, pods and revisions, and executes decisions.

use std::sync::Arc;

use futures::future;
use longshore_client::{Change, Cluster, Error, kinds::Node};
use parking_lot::Mutex;

use super::{
    backoff::Backoff,
    counts::status,
    facts::DaemonSet,
    manage::manage,
    nodes::{NodeFacts, Nodes},
    requests::apply,
    rollout::rollout,
    status::Status,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity},
    history::{Choice, Live, Revision, choose, data, surplus},
    key::Key,
    pod_facts::next_available,
    queue::{Next, Queue},
    reconcile::{self, feed},
    workload::{Claims, REVISION_LABEL, Requests, Workload, claim, feeds},
};

/// The number of workers, as in Kubernetes.
const WORKERS: usize = 2;

struct Controller {
    requests: Requests<DaemonSet>,
    queue: Queue<Key>,
    nodes: Mutex<Arc<Nodes>>,
    backoff: Mutex<Backoff>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let what = DaemonSet::KIND.what;
    let sets = caches.of("apps", DaemonSet::KIND.kind);
    let revisions = caches.of("apps", "ControllerRevision");
    let requests = Requests::new(cluster, &caches, &events);
    let (Some(sets), Some(revisions), Some(requests)) = (sets, revisions, requests) else {
        return;
    };
    let controller = Controller {
        requests,
        queue: Queue::new(&caches.clock),
        nodes: Mutex::default(),
        backoff: Mutex::default(),
    };
    let nodes = feed(what, &caches.nodes, |key, change: &Change<Node>| {
        controller.put_node(&key, change);
    });
    let (requests, queue) = (&controller.requests, &controller.queue);
    let objects = feeds(requests, queue, &sets.1, &revisions.1, &caches);
    let feeds = future::join(nodes, objects);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(what, WORKERS, queue, feeds, reconcile).await;
}

impl Controller {
    /// Stores a node. A relevant change queues all DaemonSets.
    fn put_node(&self, key: &Key, change: &Change<Node>) {
        let facts = match change {
            Change::Upsert(item) => match item.object() {
                Ok(node) => Some(NodeFacts::of(&node)),
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a node");
                    return;
                }
            },
            Change::Gone(_) => None,
        };
        let mut nodes = self.nodes.lock();
        if nodes.get(&key.name) == facts.as_ref() {
            return;
        }
        match facts {
            Some(facts) => Arc::make_mut(&mut nodes).insert(key.name.clone(), facts),
            None => Arc::make_mut(&mut nodes).remove(&key.name),
        };
        drop(nodes);
        for key in self.requests.store.lock().owned.keys() {
            self.queue.add(key);
        }
    }

    /// Adopts and releases objects, and returns those that belong to the set.
    async fn claims(&self, key: &Key) -> Result<Option<(Arc<DaemonSet>, Claims)>, Error> {
        let snapshot = || self.requests.store.lock().snapshot(key);
        let Some(seen) = snapshot() else {
            return Ok(None);
        };
        let claims = claim(&seen);
        if !claims.has_changes() {
            return Ok(Some((seen.workload, claims)));
        }
        self.requests.claim(&seen.workload.meta, &claims).await?;
        Ok(snapshot().map(|seen| (seen.workload.clone(), claim(&seen))))
    }

    /// Returns the revision of the template, and the collision count.
    async fn revision(
        &self,
        set: &DaemonSet,
        revisions: &[Arc<Revision>],
    ) -> Result<(Arc<Revision>, Option<i64>), Error> {
        let known = set.status.collision_count;
        let data = data(&set.spec.template);
        match choose(revisions, &data) {
            Choice::Keep(revision) => Ok((revision, known)),
            Choice::Renumber(revision, number) => {
                let revision = self.requests.renumber(&revision, number).await?;
                Ok((Arc::new(revision), known))
            }
            Choice::Create(number) => {
                let before = known.unwrap_or(0);
                let (revision, collisions) = self
                    .requests
                    .create_revision(&set.meta, &data, number, REVISION_LABEL, before)
                    .await?;
                let known = known.or((collisions > 0).then_some(0));
                Ok((Arc::new(revision), known.map(|_| collisions)))
            }
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some((set, claims)) = self.claims(&key).await? else {
            return Ok(Next::Done);
        };
        if set.meta.selector.is_everything() {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            let requests = &self.requests;
            requests.event(&set.meta, Severity::Warning, "SelectingAll", text);
            return Ok(Next::Done);
        }
        if set.meta.deleting {
            return Ok(Next::Done);
        }
        let (revision, collisions) = self.revision(&set, &claims.revisions).await?;
        let hash = revision.labels.get(REVISION_LABEL);
        let hash = hash.map(String::as_str).unwrap_or_default();
        let nodes = self.nodes.lock().clone();
        let now = self.queue.clock().now();
        let mut changes = {
            let mut backoff = self.backoff.lock();
            let (uid, generation) = (&set.meta.uid, set.status.observed_generation);
            let mut failed = |node: &str| backoff.failed(uid, generation, node, now);
            manage(&set, &nodes, &claims.pods, hash, &mut failed, now)
        };
        let wait = changes.wait;
        if changes.is_empty() && set.spec.rolls_out() {
            changes = rollout(&set, &nodes, &claims.pods, hash, now);
        }
        let applied = apply(&self.requests, &set, &changes, hash).await;
        let truncated = self.truncate(&set, &claims, &revision).await;
        let new = status(&set, &nodes, &claims.pods, hash, collisions, now);
        let stored = self.store_status(&set, &new).await;
        applied.and(truncated).and(stored)?;
        let ready = next_available(
            claims.pods.iter().map(|pod| &**pod),
            set.spec.min_ready_seconds,
            now,
        );
        let margin = self.queue.clock().margin();
        let next = wait
            .into_iter()
            .chain(ready.map(|wait| wait + margin))
            .min();
        Ok(next.map_or(Next::Done, Next::After))
    }

    async fn store_status(&self, set: &DaemonSet, status: &Status) -> Result<(), Error> {
        if *status == set.status {
            return Ok(());
        }
        self.requests.store_status(&set.meta, status.patch()).await
    }

    /// Deletes old revisions.
    async fn truncate(
        &self,
        set: &DaemonSet,
        claims: &Claims,
        current: &Revision,
    ) -> Result<(), Error> {
        let old = claims.revisions.iter();
        let old = old.filter(|revision| revision.uid != current.uid);
        let old: Vec<Arc<Revision>> = old.cloned().collect();
        let in_use = |revision: &Revision| {
            let hash = revision.labels.get(REVISION_LABEL);
            let mut pods = claims.pods.iter();
            hash.is_some_and(|hash| pods.any(|pod| pod.revision() == hash))
        };
        for revision in surplus(&old, set.spec.history(), Live::Counts, in_use) {
            self.requests.remove_revision(&revision).await?;
        }
        Ok(())
    }
}
