//! The loop: watches StatefulSets, pods, revisions and claims, and executes plans.

use std::sync::Arc;

use futures::future;
use longshore_client::{Change, Cluster, Error, kinds::Any};

use super::{
    action::{Action, Observed},
    facts::StatefulSet,
    identity::owns_claim,
    plan::plan,
    requests::{SetRequests, Templates},
    status::Status,
};
use crate::{
    caches::Caches,
    concurrent::all,
    events::Recorder,
    history::{Choice, Live, Revision, choose, data, surplus, template},
    key::Key,
    pod_facts::{PodFacts, next_available},
    queue::{Next, Queue},
    reconcile::{self, feed},
    replicas::batches,
    workload::{Claims, Requests, Workload, claim, feeds},
};

/// The number of workers.
const WORKERS: usize = 5;
/// The label of a revision that contains its hash.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

struct Controller {
    requests: SetRequests,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder) {
    let what = StatefulSet::KIND.what;
    let sets = caches.of("apps", StatefulSet::KIND.kind);
    let revisions = caches.of("apps", "ControllerRevision");
    let claims = caches.of("", "PersistentVolumeClaim");
    let common = Requests::new(cluster.clone(), &caches, &events);
    let (Some(sets), Some(revisions), Some(claims), Some(common)) =
        (sets, revisions, claims, common)
    else {
        return;
    };
    let controller = Controller {
        requests: SetRequests {
            common,
            claims: cluster.view_of::<Any>(claims.0.clone()),
            known_claims: claims.1.clone(),
        },
        queue: Queue::new(&caches.clock),
    };
    let common = &controller.requests.common;
    let objects = feeds(common, &controller.queue, &sets.1, &revisions.1, &caches);
    let claims = feed(what, &claims.1, |key, change: &Change<Any>| {
        let namespace = key.namespace.as_str();
        let store = common.store.lock();
        let affected = store.owned.parents(namespace);
        let affected = affected.filter(|set| owns_claim(set, change.item().name()));
        for set in affected {
            controller.queue.add(set.meta.key.clone());
        }
    });
    let feeds = future::join(objects, claims);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(what, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    /// Adopts and releases objects, and returns those that belong to the set.
    async fn claims(&self, key: &Key) -> Result<Option<(Arc<StatefulSet>, Claims)>, Error> {
        let common = &self.requests.common;
        let snapshot = || common.store.lock().snapshot(key);
        let Some(seen) = snapshot() else {
            return Ok(None);
        };
        let claims = claim(&seen);
        if !claims.has_changes() {
            return Ok(Some((seen.workload, claims)));
        }
        common.claim(&seen.workload.meta, &claims).await?;
        Ok(snapshot().map(|seen| (seen.workload.clone(), claim(&seen))))
    }

    /// Returns the revision of the template, and the collision count. A set in deletion gets no new
    /// revision, because the garbage collector may have deleted the old one.
    async fn revision(
        &self,
        set: &StatefulSet,
        revisions: &[Arc<Revision>],
    ) -> Result<Option<(Arc<Revision>, i64)>, Error> {
        let common = &self.requests.common;
        let collisions = set.status.collision_count.unwrap_or(0);
        let data = data(&set.spec.template);
        match choose(revisions, &data) {
            Choice::Keep(revision) => Ok(Some((revision, collisions))),
            _ if set.meta.deleting => Ok(None),
            Choice::Renumber(revision, number) => {
                let revision = common.renumber(&revision, number).await?;
                Ok(Some((Arc::new(revision), collisions)))
            }
            Choice::Create(number) => {
                let (revision, collisions) = common
                    .create_revision(&set.meta, &data, number, HASH_LABEL, collisions)
                    .await?;
                Ok(Some((Arc::new(revision), collisions)))
            }
        }
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some((set, claims)) = self.claims(&key).await? else {
            return Ok(Next::Done);
        };
        let Some((update, collisions)) = self.revision(&set, &claims.revisions).await? else {
            return Ok(Next::Done);
        };
        let mut revisions = claims.revisions.iter();
        let current = revisions.find(|one| one.key.name == set.status.current_revision);
        let current = current.unwrap_or(&update);
        let names = (current.key.name.as_str(), update.key.name.as_str());
        let now = self.queue.clock().now();
        let plan = plan(&Observed {
            set: &set,
            pods: &claims.pods,
            revisions: names,
            collisions,
            claim: &|name| self.requests.claim(&key.namespace, name),
            now,
        });
        let (old, new) = (template(&current.data), template(&update.data));
        let templates = Templates {
            old: (&old, names.0),
            new: (&new, names.1),
        };
        let mut status = plan.status;
        let acted = self
            .execute(&set, &plan.phases, &templates, &mut status)
            .await;
        let stored = self.store_status(&set, status).await;
        let truncated = self.truncate(&set, &claims, names).await;
        acted.and(stored).and(truncated)?;
        let wait = next_available(
            claims.pods.iter().map(|pod| &**pod),
            set.spec.min_ready_seconds,
            now,
        );
        let margin = self.queue.clock().margin();
        Ok(wait.map_or(Next::Done, |wait| Next::After(wait + margin)))
    }

    async fn execute(
        &self,
        set: &StatefulSet,
        phases: &[Vec<Action>],
        templates: &Templates<'_>,
        status: &mut Status,
    ) -> Result<(), Error> {
        let store = &self.requests.common.store;
        store.lock().owned.begin_creating(&set.meta.uid);
        let mut outcome = Ok(());
        for phase in phases {
            outcome = self.execute_phase(set, phase, templates, status).await;
            if outcome.is_err() {
                break;
            }
        }
        store.lock().owned.end_creating(&set.meta.uid);
        outcome
    }

    async fn execute_phase(
        &self,
        set: &StatefulSet,
        phase: &[Action],
        templates: &Templates<'_>,
        status: &mut Status,
    ) -> Result<(), Error> {
        let one = async |action: &Action| self.requests.act(set, action, templates).await;
        let is_update = phase.iter().any(|one| matches!(one, Action::Update(_)));
        if is_update || !set.spec.is_parallel() {
            for action in phase {
                one(action).await?;
                if is_update {
                    status.current_replicas = status.current_replicas.saturating_sub(1);
                }
            }
            return Ok(());
        }
        let mut left = phase;
        for size in batches(phase.len()) {
            let Some((batch, rest)) = left.split_at_checked(size) else {
                break;
            };
            all(batch.iter().map(one).collect()).await?;
            left = rest;
        }
        Ok(())
    }

    async fn store_status(&self, set: &StatefulSet, mut status: Status) -> Result<(), Error> {
        status.complete(set.spec.replicas);
        if status == set.status {
            return Ok(());
        }
        let common = &self.requests.common;
        common.store_status(&set.meta, status.patch()).await
    }

    /// Deletes old revisions.
    async fn truncate(
        &self,
        set: &StatefulSet,
        claims: &Claims,
        (current, update): (&str, &str),
    ) -> Result<(), Error> {
        let Some(limit) = set.spec.history() else {
            return Ok(());
        };
        let in_use = |revision: &Revision| {
            let name = revision.key.name.as_str();
            let mut pods = claims.pods.iter();
            name == current
                || name == update
                || pods.any(|pod: &Arc<PodFacts>| pod.revision() == name)
        };
        for revision in surplus(&claims.revisions, limit, Live::Ignored, in_use) {
            self.requests.common.remove_revision(&revision).await?;
        }
        Ok(())
    }
}
