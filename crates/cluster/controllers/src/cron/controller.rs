//! The CronJob controller's loop: watches CronJobs and Jobs, and acts on each
//! CronJob.

use std::sync::Arc;

use futures::future;
use k8s_openapi::api::batch::v1::CronJob;
use longshore_client::{
    Change, Cluster, Error,
    kinds::{Any, Job},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    facts::{self, JobFacts},
    pace::Pace,
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
const NAME: &str = "cronjob";
/// The number of workers.
const WORKERS: usize = 4;

struct Controller {
    requests: Requests,
    queue: Queue<Key>,
}

/// Runs the controller until its cluster is closed.
pub(crate) async fn run(cluster: Cluster, caches: Arc<Caches>, events: Recorder, pace: Pace) {
    let Some(cron_jobs) = caches.cron_jobs() else {
        return;
    };
    let controller = Controller {
        requests: Requests {
            cluster,
            events: events.named("cronjob-controller"),
            pace,
            store: Mutex::default(),
        },
        queue: Queue::new(&caches.clock),
    };
    let jobs = feed(NAME, &caches.jobs, |key, change| {
        controller.put_job(&key, change);
    });
    let crons = feed(NAME, cron_jobs, |key, change| {
        controller.put_cron(key, change);
    });
    let feeds = future::join(crons, jobs);
    let reconcile = |key| controller.reconcile(key);
    reconcile::run(NAME, WORKERS, &controller.queue, feeds, reconcile).await;
}

impl Controller {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.requests.store.lock()
    }

    fn put_cron(&self, key: Key, change: &Change<Any>) {
        match change {
            Change::Upsert(item) => match item.typed::<CronJob>() {
                Ok(cron) => {
                    self.store().put(&key, cron, self.requests.now());
                    self.queue.add(key);
                }
                Err(error) => tracing::warn!(?key, %error, "cannot read a CronJob"),
            },
            Change::Gone(item) => self.store().remove(&key, Some(item.uid())),
        }
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
                tracing::warn!(?key, %error, "cannot read a Job");
                return;
            }
        };
        let cron = owned.as_ref().map(|(cron, _)| cron.clone());
        let former_owner = self.store().put_job(key, owned);
        cron.into_iter()
            .chain(former_owner)
            .for_each(|cron| self.queue.add(cron));
    }

    async fn reconcile(&self, key: Key) -> Result<Next, Error> {
        let Some(snapshot) = self.requests.snapshot(&key).await? else {
            return Ok(Next::Done);
        };
        let cron = &*snapshot.cron;
        let missing = self.requests.missing(&key, &snapshot).await?;
        let observed = Observed {
            cron,
            jobs: &snapshot.jobs,
            missing: &missing,
            changed: snapshot.changed,
            now: self.requests.now(),
        };
        let plan = plan(&observed);
        for job in &plan.beyond_history_limit {
            // The error is reported as an Event. The next reconciliation retries.
            let _ = self.requests.delete(&key, cron, &job.name, &job.uid).await;
        }
        let mut status = plan.status;
        let started = match &plan.start {
            Some(start) => self.requests.start(&key, cron, start, &mut status).await,
            None => Ok(()),
        };
        // The status must record what has been done, even if some requests failed.
        if !self.requests.store_status(&key, cron, status).await? {
            return Ok(Next::Done);
        }
        let new_notices = self.store().new_notices(&key, plan.notices);
        for notice in new_notices {
            self.requests
                .record_event(cron, notice.severity, notice.reason, &notice.message);
        }
        started?;
        let requeue_after = plan
            .requeue_after
            .map(|wait| wait.min(self.requests.pace.max_wait));
        Ok(requeue_after.map_or(Next::Done, Next::After))
    }
}
