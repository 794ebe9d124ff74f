//! The CronJob controller's loop: watches CronJobs and Jobs, carries plans out.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::batch::v1::{CronJob, CronJobStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use longshore_client::{
    Change, Cluster, DeleteOptions, Error, Item, Propagation,
    kinds::{Any, Job},
};
use parking_lot::Mutex;

use super::{
    facts::{self, JobFacts},
    jobs,
    plan::{self, Observed, Start, plan},
    store::{Snapshot, Store},
};
use crate::{
    caches::Caches,
    events::{Recorder, Severity, Subject},
    key::Key,
    queue::{Next, Queue, is_terminating},
};

/// CronJobs worked on at a time.
const WORKERS: usize = 4;

/// The clock that schedules are held against.
#[derive(Clone)]
pub(crate) struct Pace {
    /// The present.
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The longest time until a CronJob is looked at again. Waits are measured
    /// by a clock that neither follows the wall's when it is set nor runs while
    /// the machine sleeps.
    pub(crate) longest_wait: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            longest_wait: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pace({:?})", self.longest_wait)
    }
}

struct Controller {
    cluster: Cluster,
    events: Recorder,
    pace: Pace,
    store: Mutex<Store>,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder, pace: Pace) {
    let Some(cron_jobs) = caches.cron_jobs() else {
        return;
    };
    let controller = Controller {
        cluster,
        events: events.named("cronjob-controller"),
        pace,
        store: Mutex::default(),
        queue: Queue::new(),
    };
    let mut crons = cron_jobs.subscribe();
    let mut jobs = caches.jobs.subscribe();
    // Everything there is goes in before the first decision is made.
    while let Some(change) = jobs.try_next() {
        controller.job_changed(&change);
    }
    while let Some(change) = crons.try_next() {
        controller.cron_changed(&change);
    }
    let watch = async {
        loop {
            tokio::select! {
                Some(change) = crons.next() => controller.cron_changed(&change),
                Some(change) = jobs.next() => controller.job_changed(&change),
                else => return,
            }
        }
    };
    let work = controller
        .queue
        .work("cronjob", WORKERS, |key| controller.reconcile(key));
    tokio::select! {
        () = watch => {}
        () = work => {}
    }
}

impl Controller {
    fn now(&self) -> Timestamp {
        (self.pace.now)()
    }

    fn cron_changed(&self, change: &Change<Any>) {
        let key = Key::of(change.item());
        match change {
            Change::Upsert(item) => match item.typed::<CronJob>() {
                Ok(cron) => {
                    self.store.lock().put(&key, cron, self.now());
                    self.queue.add(key);
                }
                Err(error) => tracing::warn!(?key, %error, "a CronJob cannot be read"),
            },
            Change::Gone(item) => self.store.lock().remove(&key, Some(item.uid())),
        }
    }

    fn job_changed(&self, change: &Change<Job>) {
        let key = Key::of(change.item());
        let owned = match change {
            Change::Upsert(item) => facts::owner(item).map(|(cron, uid)| {
                let facts = JobFacts::of(item, uid);
                facts.map(|facts| (cron, facts))
            }),
            Change::Gone(_) => None,
        };
        let owned = match owned.transpose() {
            Ok(owned) => owned,
            Err(error) => {
                tracing::warn!(?key, %error, "a Job cannot be read");
                return;
            }
        };
        let cron = owned.as_ref().map(|(cron, _)| cron.clone());
        let left = self.store.lock().put_job(&key, owned);
        cron.into_iter()
            .chain(left)
            .for_each(|cron| self.queue.add(cron));
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.snapshot(&key).await? else {
            return Ok(Next::Done);
        };
        let cron = &*snapshot.cron;
        let missing = self.missing(&key, &snapshot).await?;
        let observed = Observed {
            cron,
            jobs: &snapshot.jobs,
            missing: &missing,
            changed: snapshot.changed,
            now: self.now(),
        };
        let Some(plan) = plan(&observed) else {
            return Ok(Next::Done);
        };
        for job in &plan.expired {
            // Told, and tried again with the next look.
            let _ = self.delete(&key, cron, &job.name, &job.uid).await;
        }
        let mut status = plan.status;
        let started = match &plan.start {
            Some(start) => self.start(&key, cron, start, &mut status).await,
            None => Ok(()),
        };
        // What has been done is written down, whatever has failed.
        if !self.store_status(&key, cron, status).await? {
            return Ok(Next::Done);
        }
        let news = self.store.lock().news(&key, plan.notices);
        for notice in news {
            self.tell(cron, notice.severity, notice.reason, &notice.message);
        }
        started?;
        let again = plan.again.map(|wait| wait.min(self.pace.longest_wait));
        Ok(again.map_or(Next::Done, Next::After))
    }

    /// What is known of a CronJob. Where a Job runs that it does not know of,
    /// the server is asked: the cache may lag behind this controller's writes.
    async fn snapshot(&self, key: &Key) -> Result<Option<Snapshot>, Error> {
        let Some(snapshot) = self.store.lock().snapshot(key) else {
            return Ok(None);
        };
        let status = snapshot.cron.status.as_ref();
        let is_unexpected = |job: &JobFacts| plan::is_unexpected(status, job);
        if !snapshot.jobs.iter().any(is_unexpected) {
            return Ok(Some(snapshot));
        }
        let view = self.cluster.cronjobs().in_namespace(&key.namespace)?;
        let Some(newest) = view.find(&key.name).await? else {
            return Ok(None);
        };
        let mut store = self.store.lock();
        store.renew(key, newest.typed()?, self.now());
        Ok(store.snapshot(key))
    }

    /// Uids of active Jobs that the server does not have any more. One that
    /// the cache has not shown yet is asked for.
    async fn missing(&self, key: &Key, snapshot: &Snapshot) -> Result<HashSet<String>, Error> {
        let view = self.cluster.jobs().in_namespace(&key.namespace)?;
        let mut missing = HashSet::new();
        for reference in snapshot.cron.status.iter().flat_map(plan::active) {
            let uid = reference.uid.as_deref().unwrap_or_default();
            if snapshot.jobs.iter().any(|job| job.uid == uid) {
                continue;
            }
            let name = reference.name.as_deref().unwrap_or_default();
            let found = view.find(name).await?;
            if found.is_none_or(|job| job.uid() != uid) {
                missing.insert(uid.to_owned());
            }
        }
        Ok(missing)
    }

    /// Makes a Job; the status then names it.
    async fn start(
        &self,
        key: &Key,
        cron: &CronJob,
        start: &Start,
        status: &mut CronJobStatus,
    ) -> Result<(), Error> {
        for old in &start.replace {
            let name = old.name.as_deref().unwrap_or_default();
            let uid = old.uid.as_deref().unwrap_or_default();
            self.delete(key, cron, name, uid).await?;
            plan::remove(status, uid);
        }
        let view = self.cluster.jobs().in_namespace(&key.namespace)?;
        let job = jobs::build(cron, start.time, &start.zone);
        let (made, runs) = match view.create(&job).await {
            Ok(made) => {
                let message = format!("Created job {}", made.name());
                self.tell(cron, Severity::Normal, "SuccessfulCreate", &message);
                (made, true)
            }
            Err(error) if error.is_already_exists() => {
                let found = view.fetch(&jobs::name(&key.name, start.time)).await?;
                let Some(runs) = own(&found, cron)? else {
                    tracing::debug!(?key, job = found.name(), "somebody else's Job has the name");
                    return Ok(());
                };
                (found, runs)
            }
            Err(error) => {
                if !is_terminating(&error) {
                    let message = format!("Error creating job: {error}");
                    self.tell(cron, Severity::Warning, "FailedCreate", &message);
                }
                return Err(error);
            }
        };
        if runs {
            let active = status.active.get_or_insert_default();
            active.push(jobs::reference(&made));
        }
        status.last_schedule_time = Some(Time(start.time));
        Ok(())
    }

    /// Deletes a Job, and its pods after it.
    async fn delete(&self, key: &Key, cron: &CronJob, name: &str, uid: &str) -> Result<(), Error> {
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            uid: Some(uid.to_owned()),
            ..DeleteOptions::default()
        };
        let view = self.cluster.jobs().in_namespace(&key.namespace)?;
        match view.delete(name, &options).await {
            Ok(()) => {
                self.store.lock().mark_deleting(key, name, uid);
                let message = format!("Deleted job {name}");
                self.tell(cron, Severity::Normal, "SuccessfulDelete", &message);
                Ok(())
            }
            // Another Job of that name: this one is gone.
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => {
                let message = format!("Deleted job: {error}");
                self.tell(cron, Severity::Warning, "FailedDelete", &message);
                Err(error)
            }
        }
    }

    /// Writes the status if it has changed. `false`: the CronJob is gone.
    async fn store_status(
        &self,
        key: &Key,
        cron: &CronJob,
        status: CronJobStatus,
    ) -> Result<bool, Error> {
        if cron.status.clone().unwrap_or_default() == status {
            return Ok(true);
        }
        let mut renewed = cron.clone();
        renewed.status = Some(status);
        let view = self.cluster.cronjobs().in_namespace(&key.namespace)?;
        match view.replace_status(&key.name, &renewed).await {
            Ok(item) => {
                self.store.lock().renew(key, item.typed()?, self.now());
                Ok(true)
            }
            Err(error) if error.is_not_found() => {
                self.store.lock().remove(key, cron.metadata.uid.as_deref());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn tell(&self, cron: &CronJob, severity: Severity, reason: &str, message: &str) {
        let meta = &cron.metadata;
        let subject = Subject {
            api_version: "batch/v1",
            kind: "CronJob",
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        };
        self.events.tell(subject, severity, reason, message);
    }
}

/// Whether a Job that is there already runs; `None` when it is not the
/// CronJob's own.
fn own(job: &Item<Job>, cron: &CronJob) -> Result<Option<bool>, Error> {
    let owner = facts::owner(job).map(|(_, uid)| uid);
    if owner.is_none() || owner != cron.metadata.uid.as_deref() {
        return Ok(None);
    }
    JobFacts::of(job, owner.unwrap_or_default()).map(|facts| Some(facts.is_running()))
}
