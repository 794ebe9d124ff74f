//! Objects of submissions that were killed before they had created a Job. They are not part of any
//! listed run.

use std::time::Duration;

use jiff::Timestamp;
use longshore_client::{
    Cluster, DeleteOptions, Item, LabelSelector, Object,
    kinds::{CronJob, Job, Secret, Service},
};
use longshore_diagnosis::names;
use longshore_model::ObjectMeta;

use super::{
    RunSummary, RunsError, if_allowed,
    remove::{delete_unowned, gone},
};
use crate::owner::Owner;

/// An object without a run.
#[derive(Debug)]
pub struct Leftover {
    /// The name of the run that was not created. `None` for a bundle, which runs share.
    pub run: Option<String>,
    /// The user who submitted the run, if the object records a valid one.
    pub owner: Option<Owner>,
    created: Option<Timestamp>,
    object: LeftoverObject,
}

#[derive(Debug)]
enum LeftoverObject {
    Secret(Item<Secret>),
    Service(Item<Service>),
    Notifier(Item<Job>),
    ScheduledNotifier(Item<CronJob>),
}

impl Leftover {
    /// Returns true if the object is older than `age`. Younger objects may belong to a submission
    /// in progress.
    #[must_use]
    pub fn is_older(&self, age: Duration, now: Timestamp) -> bool {
        let Some(created) = self.created else {
            return false;
        };
        let found = now.duration_since(created);
        Duration::try_from(found).is_ok_and(|found| found > age)
    }

    /// Deletes the object.
    ///
    /// # Errors
    /// [`RunsError::Cluster`].
    pub async fn remove(&self) -> Result<(), RunsError> {
        let options = DeleteOptions::background();
        match &self.object {
            LeftoverObject::Secret(secret) if self.run.is_none() => delete_unowned(secret).await?,
            LeftoverObject::Secret(secret) => gone(secret.delete(&options).await)?,
            LeftoverObject::Service(service) => gone(service.delete(&options).await)?,
            LeftoverObject::Notifier(job) => gone(job.delete(&options).await)?,
            LeftoverObject::ScheduledNotifier(schedule) => {
                gone(schedule.delete(&options).await)?;
            }
        }
        Ok(())
    }
}

/// The Secrets, Services and notifiers of a namespace that do not belong to a run and do not have
/// an owner.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn leftovers(
    cluster: &Cluster,
    namespace: &str,
    runs: &[RunSummary],
) -> Result<Vec<Leftover>, RunsError> {
    let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])
        .map_err(longshore_client::Error::from)?;
    let secrets = cluster.secrets().in_namespace(namespace)?;
    let services = cluster.services().in_namespace(namespace)?;
    let (secrets, services) = (secrets.labels(ours.clone()), services.labels(ours));
    let notifiers: LabelSelector = names::NOTIFIES
        .parse()
        .map_err(longshore_client::Error::from)?;
    let jobs = cluster.jobs().in_namespace(namespace)?;
    let schedules = cluster.cronjobs().in_namespace(namespace)?;
    let (jobs, schedules) = (jobs.labels(notifiers.clone()), schedules.labels(notifiers));
    let schedules = async { if_allowed(schedules.list().await) };
    let (secrets, services, jobs, schedules) =
        futures::try_join!(secrets.list(), services.list(), jobs.list(), schedules)?;
    let mut found = Vec::new();
    for secret in secrets.items {
        if is_left(&secret, runs) {
            found.push(leftover(&secret.clone(), LeftoverObject::Secret(secret)));
        }
    }
    for service in services.items {
        if is_left(&service, runs) {
            found.push(leftover(&service.clone(), LeftoverObject::Service(service)));
        }
    }
    for job in jobs.items {
        if is_left(&job, runs) {
            found.push(leftover(&job.clone(), LeftoverObject::Notifier(job)));
        }
    }
    for schedule in schedules {
        if is_left(&schedule, runs) {
            let object = LeftoverObject::ScheduledNotifier(schedule.clone());
            found.push(leftover(&schedule, object));
        }
    }
    Ok(found)
}

fn leftover<K: Object>(item: &Item<K>, object: LeftoverObject) -> Leftover {
    let meta = item.meta();
    Leftover {
        run: run_of(meta).cloned(),
        owner: Owner::of_object(meta),
        created: meta.creation_timestamp,
        object,
    }
}

fn is_left<K: Object>(item: &Item<K>, runs: &[RunSummary]) -> bool {
    let meta = item.meta();
    if !meta.owner_references.is_empty() || meta.deletion_timestamp.is_some() {
        return false;
    }
    match (run_of(meta), meta.annotations.get(names::BUNDLE)) {
        (Some(run), _) => !runs.iter().any(|known| known.run.label() == run),
        (None, Some(bundle)) => !runs
            .iter()
            .any(|known| known.bundle.as_ref() == Some(bundle)),
        (None, None) => false,
    }
}

/// The name of the object's run, or of the run that it notifies about.
fn run_of(meta: &ObjectMeta) -> Option<&String> {
    let labels = &meta.labels;
    labels
        .get(names::RUN)
        .or_else(|| labels.get(names::NOTIFIES))
}
