//! The CronJob controller's loop: watches CronJobs and Jobs, decides what to do
//! about each.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;
use longshore_client::{
    Change, Cluster, Error,
    kinds::{Any, Job},
};
use parking_lot::Mutex;

use super::{
    facts::{self, JobFacts},
    plan::{self, Observed, plan},
    store::{Snapshot, Store},
};
use crate::{
    caches::Caches,
    events::Recorder,
    guard,
    key::Key,
    queue::{Next, Queue},
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

pub(super) struct Controller {
    pub(super) cluster: Cluster,
    pub(super) events: Recorder,
    pace: Pace,
    pub(super) store: Mutex<Store>,
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
    pub(super) fn now(&self) -> Timestamp {
        (self.pace.now)()
    }

    fn cron_changed(&self, change: &Change<Any>) {
        let key = Key::of(change.item());
        guard::change("cronjob", &key.clone(), || self.put_cron(key, change));
    }

    fn put_cron(&self, key: Key, change: &Change<Any>) {
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
        guard::change("cronjob", &key, || self.put_job(&key, change));
    }

    fn put_job(&self, key: &Key, change: &Change<Job>) {
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
        let left = self.store.lock().put_job(key, owned);
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
        let plan = plan(&observed);
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
}
