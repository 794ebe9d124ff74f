//! The Job controller's loop: watches Jobs and pods, carries plans out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::{batch::v1 as batch, core::v1 as core};
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Patch, Propagation,
    kinds::{Job, Pod},
};
use parking_lot::Mutex;
use serde_json::json;

use super::{
    backoff::BackoffLimits,
    facts::PodFacts,
    names,
    plan::{Observed, Plan, Removal, is_decided, plan},
    pods::{self, NewPod},
    store::Store,
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    guard,
    key::Key,
    queue::{Next, Queue},
};

/// Requests under way at a time, for one Job.
const CONCURRENCY: usize = 16;
/// Jobs worked on at a time.
const WORKERS: usize = 8;
/// Looks at a Job in a row before others get their turn.
const ROUNDS: usize = 6;

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Work {
    /// A Job.
    Job(Key),
    /// A pod with the finalizer whose Job may be gone.
    Stray(Key),
}

struct Controller {
    cluster: Cluster,
    events: Recorder,
    limits: BackoffLimits,
    store: Mutex<Store>,
    queue: Queue<Work>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(
    cluster: Cluster,
    caches: Arc<Caches>,
    events: Recorder,
    limits: BackoffLimits,
) {
    let events = events.named("job-controller");
    let (store, queue) = (Mutex::default(), Queue::new());
    let controller = Controller {
        cluster,
        events,
        limits,
        store,
        queue,
    };
    let mut jobs = caches.jobs.subscribe();
    let mut pods = caches.pods.subscribe();
    // Everything there is goes in before the first decision is made.
    while let Some(change) = jobs.try_next() {
        controller.job_changed(&change);
    }
    while let Some(change) = pods.try_next() {
        controller.pod_changed(&change);
    }
    let watch = async {
        loop {
            tokio::select! {
                Some(change) = jobs.next() => controller.job_changed(&change),
                Some(change) = pods.next() => controller.pod_changed(&change),
                else => return,
            }
        }
    };
    let work = controller
        .queue
        .work("job", WORKERS, |work| controller.reconcile(work));
    tokio::select! {
        () = watch => {}
        () = work => {}
    }
}

impl Controller {
    fn job_changed(&self, change: &Change<Job>) {
        let key = Key::of(change.item());
        guard::change("job", &key.clone(), || self.put_job(key, change));
    }

    fn put_job(&self, key: Key, change: &Change<Job>) {
        match change {
            Change::Upsert(item) => match item.typed::<batch::Job>() {
                Ok(job) => {
                    self.store.lock().put_job(&key, job);
                    self.queue.add(Work::Job(key));
                }
                Err(error) => tracing::warn!(?key, %error, "a Job cannot be read"),
            },
            Change::Gone(item) => {
                let strays = self.store.lock().remove_job(&key, item.uid());
                strays
                    .into_iter()
                    .for_each(|pod| self.queue.add(Work::Stray(pod)));
            }
        }
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        let key = Key::of(change.item());
        guard::change("job", &key.clone(), || self.put_pod(key, change));
    }

    fn put_pod(&self, key: Key, change: &Change<Pod>) {
        if self.store.lock().pod(&key).is_none() && !PodFacts::concern(change.item()) {
            return;
        }
        let owner = match change {
            Change::Upsert(item) => match item.typed::<core::Pod>() {
                Ok(pod) => {
                    let facts = PodFacts::of(&pod);
                    let (owner, tracked) = (facts.owner.clone(), facts.tracked);
                    self.store.lock().put_pod(facts);
                    if owner.is_none() && tracked {
                        self.queue.add(Work::Stray(key.clone()));
                    }
                    owner
                }
                Err(error) => {
                    tracing::warn!(?key, %error, "a pod cannot be read");
                    None
                }
            },
            Change::Gone(item) => {
                let mut store = self.store.lock();
                let owner = store.pod(&key).and_then(|pod| pod.owner.clone());
                store.remove_pod(&key, item.uid());
                owner
            }
        };
        let Some(owner) = owner else { return };
        let job = Key::new(&key.namespace, &owner.name);
        if self.store.lock().has_job(&job, &owner.uid) {
            self.queue.add(Work::Job(job));
        } else if matches!(change, Change::Upsert(_)) {
            self.queue.add(Work::Stray(key));
        }
    }

    async fn reconcile(&self, work: Work) -> Result<Next, Error> {
        match work {
            Work::Job(key) => self.job(&key).await,
            Work::Stray(key) => self.stray(&key).await,
        }
    }

    /// Lets a pod go whose Job is gone: nobody will count it.
    async fn stray(&self, key: &Key) -> Result<Next, Error> {
        let Some(pod) = self.store.lock().pod(key).cloned() else {
            return Ok(Next::Done);
        };
        if !pod.tracked {
            return Ok(Next::Done);
        }
        if let Some(owner) = &pod.owner {
            let jobs = self.cluster.jobs().in_namespace(&key.namespace)?;
            if jobs
                .find(&owner.name)
                .await?
                .is_some_and(|job| job.uid() == owner.uid)
            {
                return Ok(Next::Done);
            }
        }
        self.release(&pod).await?;
        Ok(Next::Done)
    }

    async fn job(&self, key: &Key) -> Result<Next, Error> {
        let mut acted: Option<Result<(), Error>> = None;
        let mut again = None;
        for _ in 0..ROUNDS {
            let Some(snapshot) = self.store.lock().snapshot(key, Instant::now()) else {
                return Ok(Next::Done);
            };
            if let Some(wait) = snapshot.wait {
                // An error that left it open whether a pod was made is told.
                return acted.unwrap_or(Ok(())).map(|()| Next::After(wait));
            }
            let job = snapshot.job;
            let manager = job
                .spec
                .as_ref()
                .and_then(|spec| spec.managed_by.as_deref());
            if manager.is_some_and(|manager| manager != names::MANAGER) {
                return Ok(Next::Done);
            }
            let pods: Vec<&PodFacts> = snapshot.pods.iter().collect();
            let observed = Observed {
                job: &job,
                pods: &pods,
                failures: snapshot.failures,
                limits: self.limits,
                now: Timestamp::now(),
            };
            let Some(plan) = plan(&observed) else {
                return Ok(Next::Done);
            };
            let has_actions = !plan.create.is_empty() || !plan.delete.is_empty();
            if !is_decided(job.status.as_ref()) && is_decided(Some(&plan.status)) {
                // The verdict is stored before the pods are deleted for it:
                // their end must not look like a failure with its own verdict.
                if !self.store_status(key, &job, &plan).await? {
                    return Ok(Next::Done);
                }
                continue;
            }
            if has_actions && acted.is_none() {
                acted = Some(self.act(&job, &plan).await);
                continue;
            }
            if plan.expire {
                return self.expire(key, &job).await;
            }
            if !self.store_status(key, &job, &plan).await? {
                return Ok(Next::Done);
            }
            again = plan.again;
            if has_actions && acted.as_ref().is_some_and(Result::is_ok) {
                again = Some(Duration::ZERO);
            }
            if plan.release.is_empty() {
                break;
            }
            all(plan.release.iter().map(|pod| self.release(pod)).collect()).await?;
        }
        acted.unwrap_or(Ok(()))?;
        Ok(again.map_or(Next::Done, Next::After))
    }

    /// Makes and deletes pods.
    async fn act(&self, job: &batch::Job, plan: &Plan) -> Result<(), Error> {
        let stop = AtomicBool::new(false);
        let create = plan.create.iter().map(|new| async {
            // After an error the rest would most likely fail as well.
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.create(job, *new)
                .await
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))
        });
        let created = all(create.collect()).await;
        let delete = plan.delete.iter().map(|removal| self.delete(job, removal));
        created.and(all(delete.collect()).await)
    }

    async fn create(&self, job: &batch::Job, new: NewPod) -> Result<(), Error> {
        let subject = subject(job);
        let name = pods::name(&subject.name, new.index, &pods::suffix());
        let pod = pods::build(job, new, name.clone());
        let key = Key::new(&subject.namespace, &name);
        self.store
            .lock()
            .expect(&subject.uid, key.clone(), Instant::now());
        let view = self.cluster.pods().in_namespace(&subject.namespace)?;
        let outcome = view.create(&pod).await.and_then(|item| facts(&item));
        match outcome {
            Ok(facts) => {
                self.store.lock().created(&subject.uid, facts);
                let message = format!("Created pod: {name}");
                self.events
                    .tell(subject, Severity::Normal, "SuccessfulCreate", &message);
                Ok(())
            }
            Err(error) => {
                // Refused by the server: surely not made. Anything else leaves
                // it open, and the watch will tell.
                if error.status().is_some_and(|status| status.code < 500) {
                    self.store.lock().not_created(&subject.uid, &key);
                }
                let message = format!("Error creating: {error}");
                self.events
                    .tell(subject, Severity::Warning, "FailedCreate", &message);
                Err(error)
            }
        }
    }

    async fn delete(&self, job: &batch::Job, removal: &Removal) -> Result<(), Error> {
        let pod = &removal.pod;
        if removal.uncounted && pod.tracked {
            self.release(pod).await?;
        }
        let options = DeleteOptions {
            uid: Some(pod.uid.clone()),
            ..DeleteOptions::default()
        };
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        match view.delete(&pod.name, &options).await {
            Ok(()) => {
                self.store
                    .lock()
                    .mark_deleting(&Key::new(&pod.namespace, &pod.name), &pod.uid);
                let message = format!("Deleted pod: {}", pod.name);
                self.events
                    .tell(subject(job), Severity::Normal, "SuccessfulDelete", &message);
                Ok(())
            }
            // Another pod of that name: ours is gone.
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the finalizer off.
    async fn release(&self, pod: &PodFacts) -> Result<(), Error> {
        let view = self.cluster.pods().in_namespace(&pod.namespace)?;
        let patch = Patch::strategic(json!({"metadata": {
            "uid": pod.uid,
            "$deleteFromPrimitiveList/finalizers": [names::FINALIZER],
        }}));
        let key = Key::new(&pod.namespace, &pod.name);
        match view.patch(&pod.name, &patch).await {
            Ok(item) => {
                let facts = facts(&item)?;
                let mut store = self.store.lock();
                store.renew_pod(facts);
                store.mark_released(&key, &pod.uid);
                Ok(())
            }
            // A conflict is an error: a pod that stays must not count as gone.
            Err(error) if error.is_not_found() => {
                self.store.lock().remove_pod(&key, &pod.uid);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the status if it has changed. `false`: the Job is gone.
    async fn store_status(&self, key: &Key, job: &batch::Job, plan: &Plan) -> Result<bool, Error> {
        let subject = subject(job);
        if job.status.as_ref() != Some(&plan.status) {
            let mut renewed = job.clone();
            renewed.status = Some(plan.status.clone());
            let view = self.cluster.jobs().in_namespace(&key.namespace)?;
            match view.replace_status(&key.name, &renewed).await {
                Ok(item) => self.store.lock().renew_job(key, item.typed()?),
                Err(error) if error.is_not_found() => {
                    let strays = self.store.lock().remove_job(key, &subject.uid);
                    strays
                        .into_iter()
                        .for_each(|pod| self.queue.add(Work::Stray(pod)));
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.store.lock().keep_failures(&subject.uid, plan.failures);
        for notice in &plan.notices {
            self.events.tell(
                subject.clone(),
                notice.severity,
                &notice.reason,
                &notice.message,
            );
        }
        Ok(true)
    }

    /// Deletes a Job whose time after its end is over, its pods first.
    async fn expire(&self, key: &Key, job: &batch::Job) -> Result<Next, Error> {
        if job.metadata.deletion_timestamp.is_none() {
            let options = DeleteOptions {
                propagation: Some(Propagation::Foreground),
                uid: job.metadata.uid.clone(),
                ..DeleteOptions::default()
            };
            self.cluster
                .jobs()
                .in_namespace(&key.namespace)?
                .delete(&key.name, &options)
                .await?;
        }
        Ok(Next::Done)
    }
}

/// Runs requests, so many at a time; all of them, whichever fail. Returns the
/// first error.
async fn all(requests: Vec<impl Future<Output = Result<(), Error>>>) -> Result<(), Error> {
    let results = stream::iter(requests).buffer_unordered(CONCURRENCY);
    results
        .fold(Ok(()), async |outcome: Result<(), Error>, result| {
            outcome.and(result)
        })
        .await
}

fn facts(item: &Item<Pod>) -> Result<PodFacts, Error> {
    item.typed::<core::Pod>().map(|pod| PodFacts::of(&pod))
}

fn subject(job: &batch::Job) -> Subject {
    let meta = &job.metadata;
    Subject {
        api_version: "batch/v1",
        kind: "Job",
        namespace: meta.namespace.clone().unwrap_or_default(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
    }
}
