//! Ends runs, and removes them.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use jiff::Timestamp;
use longshore_client::{Cluster, DeleteOptions, Error, Patch, kinds::Any};
use serde_json::{Value, json};

use super::Run;
use crate::{evidence::JobEvidence, names, plan::jobset};

/// Stops a run and keeps its record: its Jobs are marked as cancelled and
/// suspended, so their pods end, and the Jobs stay for `runs`. A role that has
/// ended already is left as it is. A schedule makes no more runs. Gives how many
/// Jobs were stopped.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn cancel(
    cluster: &Cluster,
    run: &Run,
    now: Timestamp,
) -> Result<usize, super::RunsError> {
    let notes = json!({names::CANCELLED: now.to_string()});
    for schedule in schedules(cluster, run).await? {
        schedule.patch(&suspension(&notes)).await?;
    }
    let mut going_on = run.found_jobs(cluster).await?;
    going_on.retain(|job| !job.is_over());
    let jobs: Vec<&JobEvidence> = going_on.iter().collect();
    stop(cluster, run, &jobs, &notes).await?;
    Ok(jobs.len())
}

/// Ends the pods of Jobs and keeps the Jobs, with notes about it.
pub(crate) async fn stop(
    cluster: &Cluster,
    run: &Run,
    jobs: &[&JobEvidence],
    notes: &Value,
) -> Result<(), Error> {
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    let patches = jobs.iter().map(async |job| {
        let patch = match job.jobset() {
            // It would let the Job go again.
            Some(_) => Patch::merge(json!({"metadata": {"annotations": notes}})),
            None => suspension(notes),
        };
        match view.patch(&job.metadata.name, &patch).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    });
    try_join_all(patches).await?;
    let sets: BTreeSet<&str> = jobs.iter().filter_map(|job| job.jobset()).collect();
    let view = cluster.view_of(Any::new(jobset().into()));
    let view = view.in_namespace(&run.namespace)?;
    let suspension = suspension(notes);
    try_join_all(sets.iter().map(|set| view.patch(set, &suspension))).await?;
    Ok(())
}

/// Suspending a Job ends its pods and keeps the Job.
fn suspension(annotations: &Value) -> Patch {
    Patch::merge(json!({
        "metadata": {"annotations": annotations},
        "spec": {"suspend": true},
    }))
}

/// The CronJobs of a run that is a schedule.
async fn schedules(
    cluster: &Cluster,
    run: &Run,
) -> Result<Vec<longshore_client::kinds::CronJobItem>, Error> {
    if run.schedule.is_some() {
        return Ok(Vec::new());
    }
    let view = cluster.cronjobs().in_namespace(&run.namespace)?;
    super::if_allowed(view.labels(run.selector()?).list().await)
}

/// Deletes a run with all its objects, running or not. With a schedule go all runs
/// that it has made.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn remove(cluster: &Cluster, run: &Run) -> Result<(), super::RunsError> {
    let options = DeleteOptions::background();
    let jobs = run.found_jobs(cluster).await?;
    // Who makes them goes first: it would make them again.
    for schedule in schedules(cluster, run).await? {
        schedule.delete(&options).await?;
    }
    let sets: BTreeSet<&str> = jobs.iter().filter_map(JobEvidence::jobset).collect();
    let view = cluster.view_of(Any::new(jobset().into()));
    let view = view.in_namespace(&run.namespace)?;
    for set in sets {
        view.delete(set, &options).await?;
    }
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    for job in &jobs {
        gone(view.delete(&job.metadata.name, &options).await)?;
    }
    if run.schedule.is_some() {
        // The rest is the schedule's.
        return Ok(());
    }
    // The Jobs own the rest, which goes with them; a submission that was cut
    // off may have left objects that nothing owns.
    let services = cluster.services().in_namespace(&run.namespace)?;
    let secrets = cluster.secrets().in_namespace(&run.namespace)?;
    let (services, secrets) = (
        services.labels(run.selector()?),
        secrets.labels(run.selector()?),
    );
    let (services, secrets) = futures::try_join!(services.list(), secrets.list())?;
    for service in &services.items {
        gone(service.delete(&options).await)?;
    }
    for secret in &secrets.items {
        gone(secret.delete(&options).await)?;
    }
    Ok(())
}

/// What is gone already need not be deleted.
fn gone(deleted: Result<(), Error>) -> Result<(), Error> {
    match deleted {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
