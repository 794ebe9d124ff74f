//! The Job controller's loop: watches Jobs and pods, and executes plans.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future;
use k8s_openapi::api::batch::v1 as batch;
use longshore_client::{
    Change, Cluster, Error, Item,
    kinds::{Job, Pod},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    backoff::BackoffLimits,
    claim::{claim, selects},
    facts::PodFacts,
    names,
    plan::{Observed, Plan, is_decided, plan},
    requests::Requests,
    store::Store,
};
use crate::{
    caches::Caches,
    concurrent::all,
    events::Recorder,
    key::Key,
    queue::{Next, Queue},
    reconcile::{self, feed},
};

/// The controller's name in the log.
const NAME: &str = "job";
/// The number of workers.
const WORKERS: usize = 8;
/// The maximum number of consecutive decisions about one Job before other Jobs are
/// processed.
const MAX_ROUNDS: usize = 6;

/// An object to reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    /// A Job.
    Job(Key),
    /// A pod with the finalizer whose Job may no longer exist.
    OrphanPod(Key),
}

struct Controller {
    requests: Requests,
    caches: Arc<Caches>,
    limits: BackoffLimits,
    queue: Queue<Work>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
    limits: BackoffLimits,
) {
    let controller = Controller {
        requests: Requests {
            cluster,
            events: events.named("job-controller"),
            store: Mutex::default(),
        },
        caches: caches.clone(),
        limits,
        queue: Queue::new(&caches.clock),
    };
    let jobs = feed(NAME, &caches.jobs, |key, change| {
        controller.put_job(key, change);
    });
    let pods = feed(NAME, &caches.pods, |key, change| {
        controller.put_pod(key, change);
    });
    let feeds = future::join(jobs, pods);
    let reconcile = |work| controller.reconcile(work);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

/// Returns true if the user chose the selector of a Job. A generated selector contains the UID of
/// the Job, so it cannot match older pods.
fn is_selector_given(job: &batch::Job) -> bool {
    let spec = job.spec.as_ref();
    spec.is_some_and(|spec| spec.manual_selector == Some(true))
}

impl Controller {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.requests.store.lock()
    }

    fn put_job(&self, key: Key, change: &Change<Job>) {
        match change {
            Change::Upsert(item) => match item.object() {
                Ok(job) => {
                    if is_selector_given(&job) && !self.store().has_job(&key, item.uid()) {
                        self.find_orphans(&key.namespace, &job);
                    }
                    self.store().put_job(&key, job);
                    self.queue.add(Work::Job(key));
                }
                Err(error) => tracing::warn!(?key, %error, "cannot read a Job"),
            },
            Change::Gone(item) => {
                let orphans = self.store().remove_job(&key, item.uid());
                self.enqueue_orphans(orphans);
            }
        }
    }

    /// Stores the pods without a controller that a new Job selects.
    fn find_orphans(&self, namespace: &str, job: &batch::Job) {
        for item in self.caches.pods.by_namespace(namespace) {
            let is_orphan = item.meta().controller().is_none();
            if is_orphan
                && selects(job, &item.meta().labels)
                && let Ok(pod) = item.typed()
            {
                self.store().put_pod(PodFacts::of(pod));
            }
        }
    }

    /// Queues the Jobs that select a pod without a controller.
    fn enqueue_selecting(&self, item: &Item<Pod>) -> bool {
        let namespace = item.namespace().unwrap_or_default();
        let jobs = self.store().selecting(namespace, &item.meta().labels);
        let is_selected = !jobs.is_empty();
        jobs.into_iter()
            .for_each(|job| self.queue.add(Work::Job(job)));
        is_selected
    }

    fn put_pod(&self, key: Key, change: &Change<Pod>) {
        let is_known = self.store().pod(&key).is_some();
        if !is_known && !PodFacts::is_relevant(change.item()) {
            // A pod that belongs to nothing matters only if a Job can adopt it.
            if matches!(change, Change::Gone(_)) || !self.enqueue_selecting(change.item()) {
                return;
            }
        }
        let owner = match change {
            Change::Upsert(item) => match item.typed() {
                Ok(pod) => {
                    let facts = PodFacts::of(pod);
                    let (owner, tracked) = (facts.owner.clone(), facts.tracked);
                    let is_orphan = owner.is_none() && !facts.is_foreign;
                    self.store().put_pod(facts);
                    if is_orphan {
                        self.enqueue_selecting(item);
                    }
                    if owner.is_none() && tracked {
                        self.queue.add(Work::OrphanPod(key.clone()));
                    }
                    owner
                }
                Err(error) => {
                    tracing::warn!(?key, %error, "cannot read a pod");
                    None
                }
            },
            Change::Gone(item) => {
                let mut store = self.store();
                let owner = store.pod(&key).and_then(|pod| pod.owner.clone());
                store.remove_pod(&key, item.uid());
                owner
            }
        };
        let Some(owner) = owner else { return };
        let job = Key::new(&key.namespace, &owner.name);
        if self.store().has_job(&job, &owner.uid) {
            self.queue.add(Work::Job(job));
        } else if matches!(change, Change::Upsert(_)) {
            self.queue.add(Work::OrphanPod(key));
        }
    }

    fn enqueue_orphans(&self, pods: Vec<Key>) {
        pods.into_iter()
            .for_each(|pod| self.queue.add(Work::OrphanPod(pod)));
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        match work {
            Work::Job(key) => self.job(&key).await,
            Work::OrphanPod(key) => self.release_orphan(&key).await,
        }
    }

    /// Removes the finalizer from a pod whose Job no longer exists, because no
    /// controller will count it.
    async fn release_orphan(&self, key: &Key) -> Result<Next, Error> {
        let Some(pod) = self.store().pod(key).cloned() else {
            return Ok(Next::Done);
        };
        if !pod.tracked {
            return Ok(Next::Done);
        }
        if let Some(owner) = &pod.owner {
            let jobs = self.requests.cluster.jobs().in_namespace(&key.namespace)?;
            if jobs
                .find(&owner.name)
                .await?
                .is_some_and(|job| job.uid() == owner.uid)
            {
                return Ok(Next::Done);
            }
        }
        self.requests.release(&pod).await?;
        Ok(Next::Done)
    }

    async fn job(&self, key: &Key) -> Result<Next, Error> {
        let mut acted: Option<Result<(), Error>> = None;
        let mut requeue_after = None;
        for _ in 0..MAX_ROUNDS {
            let Some(snapshot) = self.store().snapshot(key, Instant::now()) else {
                return Ok(Next::Done);
            };
            if let Some(wait) = snapshot.wait {
                // An error is returned if it is unknown whether a pod was created.
                return acted.unwrap_or(Ok(())).map(|()| Next::Retry(wait));
            }
            let job = snapshot.job;
            let manager = job
                .spec
                .as_ref()
                .and_then(|spec| spec.managed_by.as_deref());
            if manager.is_some_and(|manager| manager != names::MANAGER) {
                return Ok(Next::Done);
            }
            if !is_decided(job.status.as_ref()) {
                let claims = claim(&job, &snapshot.pods, &snapshot.orphans);
                if !claims.is_empty() {
                    self.requests.claim(key, &job, &claims).await?;
                    continue;
                }
            }
            let pods: Vec<&PodFacts> = snapshot.pods.iter().map(Arc::as_ref).collect();
            let observed = Observed {
                job: &job,
                pods: &pods,
                failures: snapshot.failures,
                limits: self.limits,
                now: self.caches.clock.now(),
            };
            let Some(plan) = plan(&observed) else {
                return Ok(Next::Done);
            };
            let has_actions = !plan.create.is_empty() || !plan.delete.is_empty();
            if !is_decided(job.status.as_ref()) && is_decided(Some(&plan.status)) {
                // The verdict is stored before pods are deleted for it. Otherwise their end would
                // look like a failure with its own verdict.
                if !self.store_status(key, &job, &plan).await? {
                    return Ok(Next::Done);
                }
                continue;
            }
            if has_actions && acted.is_none() {
                acted = Some(self.requests.act(&job, &plan).await);
                continue;
            }
            if plan.expire {
                return self.requests.expire(key, &job).await.map(|()| Next::Done);
            }
            if !self.store_status(key, &job, &plan).await? {
                return Ok(Next::Done);
            }
            requeue_after = plan.requeue_after;
            if has_actions && acted.as_ref().is_some_and(Result::is_ok) {
                requeue_after = Some(Duration::ZERO);
            }
            if plan.release.is_empty() {
                break;
            }
            all(plan
                .release
                .iter()
                .map(|pod| self.requests.release(pod))
                .collect())
            .await?;
        }
        acted.unwrap_or(Ok(()))?;
        Ok(requeue_after.map_or(Next::Done, Next::After))
    }

    /// Writes the status if it has changed. Returns `false` if the Job no longer
    /// exists.
    async fn store_status(&self, key: &Key, job: &batch::Job, plan: &Plan) -> Result<bool, Error> {
        let orphans = self.requests.store_status(key, job, plan).await?;
        let exists = orphans.is_none();
        self.enqueue_orphans(orphans.unwrap_or_default());
        Ok(exists)
    }
}
