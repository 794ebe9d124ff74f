//! The controller's requests: creates and deletes Jobs, and writes the status and
//! Events. The store keeps the responses.

use std::collections::HashSet;

use jiff::Timestamp;
use k8s_openapi::{
    api::batch::v1::{CronJob, CronJobStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use longshore_client::{Cluster, DeleteOptions, Error, Item, Propagation, kinds::Job};
use parking_lot::Mutex;

use super::{
    facts::{self, JobFacts},
    jobs,
    pace::Pace,
    plan::{self, Start},
    store::{Snapshot, Store},
};
use crate::{
    events::{Recorder, Severity, Subject},
    key::Key,
    refusal::is_terminating,
};

pub(super) struct Requests {
    pub(super) cluster: Cluster,
    pub(super) events: Recorder,
    pub(super) pace: Pace,
    pub(super) store: Mutex<Store>,
}

impl Requests {
    pub(super) fn now(&self) -> Timestamp {
        (self.pace.now)()
    }

    /// Returns the observed state of a CronJob. If a Job runs that the CronJob does
    /// not list, asks the server, because the cache may lag behind this
    /// controller's writes.
    pub(super) async fn snapshot(&self, key: &Key) -> Result<Option<Snapshot>, Error> {
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
        store.put_response(key, newest.typed()?, self.now());
        Ok(store.snapshot(key))
    }

    /// Returns the UIDs of active Jobs that no longer exist. Asks the server about
    /// Jobs that are not in the cache yet.
    pub(super) async fn missing(
        &self,
        key: &Key,
        snapshot: &Snapshot,
    ) -> Result<HashSet<String>, Error> {
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

    /// Creates a Job and adds it to the status.
    pub(super) async fn start(
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
        let (created, runs) = match view.create(&job).await {
            Ok(created) => {
                let message = format!("Created job {}", created.name());
                self.record_event(cron, Severity::Normal, "SuccessfulCreate", &message);
                (created, true)
            }
            Err(error) if error.is_already_exists() => {
                let found = view.fetch(&jobs::name(&key.name, start.time)).await?;
                let Some(runs) = own_job_runs(&found, cron)? else {
                    tracing::debug!(
                        ?key,
                        job = found.name(),
                        "the name belongs to a Job of another owner"
                    );
                    return Ok(());
                };
                (found, runs)
            }
            Err(error) => {
                if !is_terminating(&error) {
                    let message = format!("Error creating job: {error}");
                    self.record_event(cron, Severity::Warning, "FailedCreate", &message);
                }
                return Err(error);
            }
        };
        if runs {
            let active = status.active.get_or_insert_default();
            active.push(jobs::reference(&created));
        }
        status.last_schedule_time = Some(Time(start.time));
        Ok(())
    }

    /// Deletes a Job, with background deletion of its pods.
    pub(super) async fn delete(
        &self,
        key: &Key,
        cron: &CronJob,
        name: &str,
        uid: &str,
    ) -> Result<(), Error> {
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
                self.record_event(cron, Severity::Normal, "SuccessfulDelete", &message);
                Ok(())
            }
            // Another Job has the name, so this one no longer exists.
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => {
                let message = format!("Deleted job: {error}");
                self.record_event(cron, Severity::Warning, "FailedDelete", &message);
                Err(error)
            }
        }
    }

    /// Writes the status if it has changed. Returns `false` if the CronJob no
    /// longer exists.
    pub(super) async fn store_status(
        &self,
        key: &Key,
        cron: &CronJob,
        status: CronJobStatus,
    ) -> Result<bool, Error> {
        if cron.status.clone().unwrap_or_default() == status {
            return Ok(true);
        }
        let mut updated = cron.clone();
        updated.status = Some(status);
        let view = self.cluster.cronjobs().in_namespace(&key.namespace)?;
        match view.replace_status(&key.name, &updated).await {
            Ok(item) => {
                self.store
                    .lock()
                    .put_response(key, item.typed()?, self.now());
                Ok(true)
            }
            Err(error) if error.is_not_found() => {
                self.store.lock().remove(key, cron.metadata.uid.as_deref());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn record_event(
        &self,
        cron: &CronJob,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        let meta = &cron.metadata;
        let subject = Subject {
            api_version: "batch/v1".into(),
            kind: "CronJob".into(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        };
        self.events.record_event(subject, severity, reason, message);
    }
}

/// Returns true if an existing Job is running, or `None` if it does not belong to the CronJob.
fn own_job_runs(job: &Item<Job>, cron: &CronJob) -> Result<Option<bool>, Error> {
    let owner = facts::owner(job).map(|(_, uid)| uid);
    if owner.is_none() || owner != cron.metadata.uid.as_deref() {
        return Ok(None);
    }
    JobFacts::of(job, owner.unwrap_or_default()).map(|facts| Some(facts.is_running()))
}
