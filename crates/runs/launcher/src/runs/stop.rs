//! Stops and removes runs.

use std::{borrow::Borrow, collections::BTreeSet};

use futures::future::try_join_all;
use jiff::Timestamp;
use longshore_client::{
    Cluster, Error, Item, Kind as _, LabelSelector, Patch, View,
    kinds::{self, Any},
};
use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _},
    explain::{Cause, ClusterEvidence, Explanation},
    names,
    outcome::{Ending, Outcome},
    track,
};
use longshore_model::facts::PodFacts;
use serde_json::{Value, json};

use super::{
    Run,
    linger::end_pod,
    record::{notes, record_end},
};
use crate::{jobset::JobSet, kueue};

/// Stops a run and keeps its record: marks its Jobs as cancelled and suspends them, so that their
/// pods end and the Jobs remain for `runs`. Roles that have ended are not changed. A schedule
/// creates no more runs. If the run has ended, only its remaining Jobs are stopped. Returns the
/// number of cancelled Jobs.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn cancel(
    cluster: &Cluster,
    run: &Run,
    now: Timestamp,
) -> Result<usize, super::RunsError> {
    let notes = json!({names::CANCELLED: now.to_string()});
    let schedules = schedules(cluster, run).await?;
    if schedules.is_empty() && stop_ended(cluster, run, Pods::End, now).await?.is_some() {
        return Ok(0);
    }
    for schedule in schedules {
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

/// Stops the remaining Jobs of finished runs like a follower does: service roles when the others
/// have succeeded, and all other tasks when one has failed. Intended for runs without a follower.
/// Returns the number of stopped Jobs.
///
/// # Errors
/// [`RunsError::Cluster`](super::RunsError::Cluster).
pub async fn stop_leftovers(cluster: &Cluster, now: Timestamp) -> Result<usize, super::RunsError> {
    let mut stopped = 0;
    for found in super::list(cluster, None).await? {
        if found.outcome.is_some() {
            let jobs = stop_ended(cluster, &found.run, Pods::Leave, now).await?;
            stopped += jobs.unwrap_or_default();
        }
    }
    Ok(stopped)
}

/// The treatment of pods whose command has ended while another container is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pods {
    /// End the pods.
    End,
    /// Leave the pods, which are ended elsewhere, unless their Job is stopped.
    Leave,
}

/// Stops the remaining Jobs of a run if it has ended without being cancelled. Returns the number of
/// stopped Jobs, or `None` if it has not ended.
async fn stop_ended(
    cluster: &Cluster,
    run: &Run,
    lingering: Pods,
    now: Timestamp,
) -> Result<Option<usize>, Error> {
    let jobs = run.found_jobs(cluster).await?;
    if !jobs.iter().any(is_active) {
        // Nothing remains, or the run is cancelled in any case.
        return Ok(None);
    }
    let pods = run.list_pods(cluster).await?;
    let pods: Vec<PodFacts> = pods.iter().map(Item::typed).collect::<Result<_, _>>()?;
    let (of_jobs, of_pods): (Vec<_>, Vec<_>) = (jobs.iter().collect(), pods.iter().collect());
    let nothing = ClusterEvidence::default();
    let began = jobs
        .iter()
        .filter_map(|job| job.metadata.creation_timestamp);
    let began = began.min().unwrap_or(now);
    let seen = track::decide_now(&run.roles, &of_jobs, &of_pods, &nothing, began);
    let ended = seen
        .outcome
        .filter(|known| known.ending != Ending::Cancelled);
    let Some(outcome) = ended else {
        return Ok(None);
    };
    let known = record_end(cluster, run, &outcome, now).await?;
    if known.is_some_and(|known| known.ending == Ending::Cancelled) {
        return Ok(None);
    }
    // Jobs that complete once their pods are ended, unless ending them is not permitted.
    let mut unended: BTreeSet<Option<String>> = BTreeSet::new();
    let is_stopped = |pod: &PodFacts| {
        let job = pod.metadata.controller_name("Job").unwrap_or_default();
        seen.going_on.iter().any(|name| name == job)
    };
    let to_end = pods.iter().filter(|pod| {
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        // The pod and the log of a command that has ended are kept when its Job is stopped.
        let is_due = lingering == Pods::End || is_stopped(pod);
        is_due && pod.lingers() && !is_deleted
    });
    for pod in to_end {
        if end_pod(cluster, pod).await.is_err() {
            unended.insert(pod.task().map(|task| task.role));
        }
    }
    let left = jobs.iter().filter(|job| {
        let goes_on = seen.going_on.contains(&job.metadata.name);
        // A JobSet stops its service roles by itself.
        let is_left = goes_on && (job.jobset().is_none() || !run.is_service(job));
        is_active(job) && (is_left || unended.contains(&job.role().map(str::to_owned)))
    });
    let left: Vec<&JobEvidence> = left.collect();
    let decided = Decided {
        by_task: outcome.ending == Ending::Failed && unended.is_empty(),
        outcome,
    };
    stop_decided(cluster, run, &left, &decided, now).await?;
    Ok(Some(left.len()))
}

/// Returns true if a Job may have pods.
fn is_active(job: &JobEvidence) -> bool {
    !job.is_over() && !job.spec.suspend
}

/// The decision on the outcome of a run.
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
    jobs.retain(is_active);
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
    // This must be first, so that a missing permission leaves no incorrect annotation.
    kueue::deactivate(cluster, &run.namespace, &workloads).await?;
    let is_queued = |job: &JobEvidence| workloads.iter().any(|workload| workload.is_of(job));
    let note = Patch::merge(json!({"metadata": {"annotations": notes}}));
    let suspension = suspension(notes);
    let patches = jobs.iter().map(async |job| {
        // Only the manager of this Job can suspend it, because JobSet or Kueue would resume it.
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

/// The CronJobs of a schedule.
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
        // The CronJob for the webhook.
        let notifiers = LabelSelector::exactly([(names::NOTIFIES, run.label())]);
        let notifiers = notifiers.map_err(Error::from)?;
        found.extend(super::if_allowed(view.labels(notifiers).list().await)?);
    }
    Ok(found)
}
