//! Removes runs in an order that allows an interrupted removal to be repeated: the run is listed
//! until all its other objects are deleted.

use std::{collections::BTreeSet, time::Duration};

use longshore_client::{
    Cluster, DeleteOptions, Error, Item, Kind as _, LabelSelector, Object,
    kinds::{Any, Secret},
};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    names,
};
use longshore_model::facts::PodFacts;
use tokio::time::Instant;

use super::{Run, RunsError, stop::schedules};
use crate::{jobset::JobSet, plan::bundle_secret_name, queries};

/// The interval between checks of the pods.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Waits until no container of the run's pods is running, because they may upload outputs. Returns
/// true if all have ended within the time.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn wait_for_pods(
    cluster: &Cluster,
    run: &Run,
    limit: Duration,
) -> Result<bool, RunsError> {
    let end = Instant::now() + limit;
    loop {
        let mut is_active = false;
        for pod in run.list_pods(cluster).await? {
            let pod: PodFacts = Item::typed(&pod)?;
            is_active |= pod.has_started() && !pod.is_over();
        }
        if !is_active || Instant::now() >= end {
            return Ok(!is_active);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Deletes a run with all its objects, active or not. A schedule is deleted with all its runs.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn remove(cluster: &Cluster, run: &Run) -> Result<(), RunsError> {
    let options = DeleteOptions::background();
    let jobs = run.found_jobs(cluster).await?;
    let schedules = schedules(cluster, run).await?;
    // The other objects of a schedule's run belong to the schedule.
    let is_alone = run.schedule.is_none();
    if is_alone {
        // Objects that an interrupted submission has left without an owner. They are deleted before
        // the Jobs, because the run is found by its Jobs.
        let of_jobs = jobs.iter().map(|job| &job.metadata);
        let of_schedules = schedules.iter().map(Item::meta);
        let bundles: BTreeSet<&String> = of_jobs
            .chain(of_schedules)
            .filter_map(|meta| meta.annotations.get(names::BUNDLE))
            .collect();
        if let Err(error) = remove_unowned(cluster, run, &bundles).await {
            // The last request repeats the deletion and reports the error. Remaining objects are
            // found as leftovers.
            tracing::warn!(%error, run = %run.name, "objects without an owner are not deleted yet");
        }
    }
    // Delete the owner first, which would otherwise recreate them.
    for schedule in schedules {
        gone(schedule.delete(&options).await)?;
    }
    let sets: BTreeSet<&str> = jobs.iter().filter_map(JobEvidence::jobset).collect();
    let view = cluster.view_of::<Any>(JobSet::info());
    let view = view.in_namespace(&run.namespace)?;
    for set in sets {
        gone(view.delete(set, &options).await)?;
    }
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    for job in &jobs {
        gone(view.delete(&job.metadata.name, &options).await)?;
    }
    // These objects are deleted with their owner, but with a delay.
    match is_alone {
        true => remove_labelled(cluster, run, false).await,
        false => Ok(()),
    }
}

/// Deletes objects without an owner: the Secrets with these bundles, the Services and Secrets of
/// the run, and the Job that notifies about it.
async fn remove_unowned(
    cluster: &Cluster,
    run: &Run,
    bundles: &BTreeSet<&String>,
) -> Result<(), RunsError> {
    for sha256 in bundles {
        let name = bundle_secret_name(sha256);
        if let Some(secret) = queries::secret(cluster, &run.namespace, &name).await? {
            delete_unowned(&secret).await?;
        }
    }
    // The CronJob that notifies about a schedule is among the run's schedules.
    let notifiers = LabelSelector::exactly([(names::NOTIFIES, run.label())]);
    let notifiers = notifiers.map_err(Error::from)?;
    let jobs = cluster.jobs().in_namespace(&run.namespace)?;
    for job in jobs.labels(notifiers).list().await?.items {
        if is_chosen(&job, true) {
            gone(job.delete(&DeleteOptions::background()).await)?;
        }
    }
    remove_labelled(cluster, run, true).await
}

/// Deletes the Services and Secrets of a run: only those without an owner, or all.
async fn remove_labelled(cluster: &Cluster, run: &Run, unowned: bool) -> Result<(), RunsError> {
    let options = DeleteOptions::background();
    let services = cluster.services().in_namespace(&run.namespace)?;
    let secrets = cluster.secrets().in_namespace(&run.namespace)?;
    let (services, secrets) = (
        services.labels(run.selector()?),
        secrets.labels(run.selector()?),
    );
    let (services, secrets) = futures::try_join!(services.list(), secrets.list())?;
    for service in services
        .items
        .iter()
        .filter(|item| is_chosen(item, unowned))
    {
        gone(service.delete(&options).await)?;
    }
    for secret in secrets.items.iter().filter(|item| is_chosen(item, unowned)) {
        gone(secret.delete(&options).await)?;
    }
    Ok(())
}

fn is_chosen<K: Object>(item: &Item<K>, unowned: bool) -> bool {
    !unowned || item.meta().owner_references.is_empty()
}

/// Deletes a bundle, unless a run owns it.
pub(super) async fn delete_unowned(secret: &Item<Secret>) -> Result<(), Error> {
    if !secret.meta().owner_references.is_empty() {
        return Ok(());
    }
    let options = DeleteOptions {
        uid: Some(secret.uid().to_owned()),
        // A run that becomes the owner at this moment keeps the bundle.
        version: Some(secret.version().to_owned()),
        ..DeleteOptions::background()
    };
    match secret.delete(&options).await {
        Err(error) if error.is_conflict() => Ok(()),
        other => gone(other),
    }
}

/// Ignores that an object does not exist.
pub(super) fn gone(deleted: Result<(), Error>) -> Result<(), Error> {
    match deleted {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
