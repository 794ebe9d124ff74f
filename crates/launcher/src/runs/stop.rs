//! Stops and removes runs.

use std::{borrow::Borrow, collections::BTreeSet};

use futures::future::try_join_all;
use jiff::Timestamp;
use longshore_client::{
    Cluster, Error, Kind as _, LabelSelector, Patch, View,
    kinds::{self, Any},
};
use longshore_diagnosis::{
    evidence::JobEvidence,
    explain::{Cause, Explanation},
    names,
    outcome::{End, Ending, Outcome},
};
use serde_json::{Value, json};

use super::{Run, RunState};
use crate::{jobset::JobSet, kueue};

/// Stops a run and keeps its record: marks its Jobs as cancelled and suspends them, so that
/// their pods end and the Jobs remain for `runs`. Roles that have ended are not changed. A
/// schedule creates no more runs. Returns the number of stopped Jobs.
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
    stop(cluster, run, &going_on, &notes).await?;
    Ok(going_on.len())
}

/// Lets a schedule that was paused by [`cancel`] create runs again. Has no effect on other runs.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn resume(cluster: &Cluster, run: &Run) -> Result<(), super::RunsError> {
    let resumption = Patch::merge(json!({
        "metadata": {"annotations": {names::CANCELLED: null}},
        "spec": {"suspend": false},
    }));
    for schedule in schedules(cluster, run).await? {
        schedule.patch(&resumption).await?;
    }
    Ok(())
}

/// Stops a run because its cluster is about to stop, and records the cause on its Jobs, such as
/// `longshore down`. Followers of the run see it immediately, and `runs` and `why` report it
/// when the cluster runs again.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn stop_with_cluster(
    cluster: &Cluster,
    run: &Run,
    by: &str,
    now: Timestamp,
) -> Result<(), super::RunsError> {
    let cause = format!("the cluster was stopped by `{by}`");
    let why = Explanation::new(Cause::ClusterStopped, &cause, "run it again").seen(by);
    let mut notes = json!({names::STOPPED: format!("{now}: {cause}")});
    if let Ok(text) = serde_json::to_string(&why) {
        notes[names::WHY] = text.into();
    }
    Ok(stop(cluster, run, &going_on(cluster, run).await?, &notes).await?)
}

/// Stops the remaining Jobs of finished runs like a follower does: service roles when the
/// others have succeeded, and all other tasks when one has failed. For runs without a
/// follower. Returns the number of stopped Jobs.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn stop_leftovers(cluster: &Cluster, now: Timestamp) -> Result<usize, super::RunsError> {
    let mut stopped = 0;
    for found in super::list(cluster, None).await? {
        let Some(outcome) = found.outcome.filter(|_| found.state != RunState::Cancelled) else {
            continue;
        };
        let mut jobs = going_on(cluster, &found.run).await?;
        // A JobSet stops its service roles by itself.
        jobs.retain(|job| job.jobset().is_none());
        let decided = Decided {
            by_task: outcome.ending == Ending::Failed,
            outcome,
        };
        stop_decided(cluster, &found.run, &jobs, &decided, now).await?;
        stopped += jobs.len();
    }
    Ok(stopped)
}

/// The annotations of Jobs that are stopped because their run ended.
fn notes(outcome: &Outcome, now: Timestamp) -> Value {
    let mut notes = json!({names::STOPPED: format!("{now}: {}", outcome.reason)});
    let why = outcome.explanation.as_ref();
    if let Some(why) = why.and_then(|why| serde_json::to_string(why).ok()) {
        notes[names::WHY] = why.into();
    }
    let end = End {
        ending: outcome.ending,
        exit_code: outcome.exit_code,
    };
    if let Ok(end) = serde_json::to_string(&end) {
        notes[names::ENDED] = end.into();
    }
    notes
}

/// How the outcome of a run was decided.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) outcome: Outcome,
    /// The role of the failed task, if a task failed.
    pub(crate) by_task: bool,
}

/// Stops the active Jobs of a run whose outcome is decided.
pub(crate) async fn stop_decided(
    cluster: &Cluster,
    run: &Run,
    jobs: &[impl Borrow<JobEvidence>],
    decided: &Decided,
    now: Timestamp,
) -> Result<(), Error> {
    let Decided { outcome, by_task } = decided;
    let notes = notes(outcome, now);
    let failed = outcome.task.as_ref().filter(|_| *by_task);
    let failed = failed.map(|task| task.role.as_str());
    // The Job of the failed task fails by itself and keeps the pod with its log. If it were
    // suspended before it has counted the failure, it would delete the pod.
    let (own, rest): (Vec<_>, Vec<_>) = jobs
        .iter()
        .map(Borrow::borrow)
        .partition(|job| failed.is_some() && job.role() == failed && job.fails_by_itself());
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    let annotations = Patch::merge(json!({"metadata": {"annotations": notes}}));
    let note = own.iter().map(|job| patch(&view, job, &annotations));
    let stop = stop(cluster, run, &rest, &notes);
    futures::try_join!(try_join_all(note), stop).map(drop)
}

/// The Jobs of a run that may have pods.
async fn going_on(cluster: &Cluster, run: &Run) -> Result<Vec<JobEvidence>, Error> {
    let mut jobs = run.found_jobs(cluster).await?;
    jobs.retain(|job| !job.is_over() && !job.spec.suspend);
    Ok(jobs)
}

/// Stops the pods of Jobs, and keeps the Jobs with annotations about the cause.
async fn stop(
    cluster: &Cluster,
    run: &Run,
    jobs: &[impl Borrow<JobEvidence>],
    notes: &Value,
) -> Result<(), Error> {
    let view = cluster.jobs().in_namespace(&run.namespace)?;
    let jobs: Vec<&JobEvidence> = jobs.iter().map(Borrow::borrow).collect();
    let workloads = kueue::workloads(cluster, &run.namespace, &jobs).await?;
    // First, so that without permission no incorrect annotation is written.
    kueue::deactivate(cluster, &run.namespace, &workloads).await?;
    let is_queued = |job: &JobEvidence| workloads.iter().any(|workload| workload.is_of(job));
    let note = Patch::merge(json!({"metadata": {"annotations": notes}}));
    let suspension = suspension(notes);
    let patches = jobs.iter().map(async |job| {
        // Only its manager can suspend this Job: JobSet or Kueue would resume it.
        let is_managed = job.jobset().is_some() || is_queued(job);
        patch(&view, job, if is_managed { &note } else { &suspension }).await
    });
    try_join_all(patches).await?;
    let sets = jobs
        .iter()
        .filter_map(|job| Some((job.jobset()?, is_queued(job))));
    let sets: BTreeSet<(&str, bool)> = sets.collect();
    let view = cluster.view_of::<Any>(JobSet::info());
    let view = view.in_namespace(&run.namespace)?;
    let patches = sets.iter().map(|(set, is_queued)| {
        let change = if *is_queued { &note } else { &suspension };
        view.patch(set, change)
    });
    try_join_all(patches).await?;
    Ok(())
}

/// Patches a Job, if it still exists.
async fn patch(view: &View<kinds::Job>, job: &JobEvidence, change: &Patch) -> Result<(), Error> {
    match view.patch(&job.metadata.name, change).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Suspending a Job ends its pods and keeps the Job.
fn suspension(annotations: &Value) -> Patch {
    Patch::merge(json!({
        "metadata": {"annotations": annotations},
        "spec": {"suspend": true},
    }))
}

/// The CronJobs of a run that is a schedule.
pub(super) async fn schedules(
    cluster: &Cluster,
    run: &Run,
) -> Result<Vec<kinds::CronJobItem>, Error> {
    if run.schedule.is_some() {
        return Ok(Vec::new());
    }
    let view = cluster.cronjobs().in_namespace(&run.namespace)?;
    let own = view.clone().labels(run.selector()?);
    let mut found = super::if_allowed(own.list().await)?;
    if !found.is_empty() {
        // The CronJob of the webhook.
        let notifiers = LabelSelector::exactly([(names::NOTIFIES, run.label())]);
        let notifiers = notifiers.map_err(Error::from)?;
        found.extend(super::if_allowed(view.labels(notifiers).list().await)?);
    }
    Ok(found)
}
