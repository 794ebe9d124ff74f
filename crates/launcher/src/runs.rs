//! Runs that exist: their history is in the cluster's own objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{
    Cluster, DeleteOptions, Item, LabelSelector, Patch, View,
    kinds::{Job, Pod},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    evidence::{JobEvidence, PodEvidence},
    explain::{Around, Explanation},
    names::{self, RunName},
    track,
};

/// Why a question about runs has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunsError {
    /// The cluster refused, or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// There is no such run.
    #[error("no run {name:?} in namespace {namespace:?}{}; `longshore runs` lists them", nearest.as_ref().map(|near| format!(", did you mean {near:?}?")).unwrap_or_default())]
    NoSuchRun {
        /// The name asked for.
        name: String,
        /// The namespace it was looked for in.
        namespace: String,
        /// A run whose name begins so.
        nearest: Option<String>,
    },
}

/// A role of a run that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRole {
    /// The role's name.
    pub name: String,
    /// How many tasks it has.
    pub count: u32,
    /// Whether it ends when the others have.
    #[serde(default)]
    pub service: bool,
}

/// A run that exists: what is needed to follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub name: RunName,
    /// Its namespace.
    pub namespace: String,
    /// Its roles.
    pub roles: Vec<RunRole>,
}

impl Run {
    /// Selects the objects of the run.
    pub(crate) fn selector(&self) -> Result<LabelSelector, longshore_client::Error> {
        Ok(LabelSelector::exactly([(names::RUN, self.name.as_str())])?)
    }

    pub(crate) fn pods(&self, cluster: &Cluster) -> Result<View<Pod>, longshore_client::Error> {
        Ok(cluster
            .pods()
            .in_namespace(&self.namespace)?
            .labels(self.selector()?))
    }

    pub(crate) fn jobs(&self, cluster: &Cluster) -> Result<View<Job>, longshore_client::Error> {
        Ok(cluster
            .jobs()
            .in_namespace(&self.namespace)?
            .labels(self.selector()?))
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// No task runs yet.
    Pending,
    /// At least one task has started.
    Running,
    /// All tasks that end by themselves have succeeded.
    Succeeded,
    /// A task failed.
    Failed,
    /// The user cancelled it.
    Cancelled,
}

impl RunState {
    /// The state as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the run has come to its end.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary {
    /// The run.
    pub run: Run,
    /// The name as the user gave it.
    pub full_name: String,
    /// Where it stands.
    pub state: RunState,
    /// When it was submitted.
    pub created: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// The command of its first role.
    pub command: Vec<String>,
    /// The sha256 of its bundle.
    pub bundle: Option<String>,
    /// What it exited with, once it is over and known.
    pub exit_code: Option<i32>,
    /// Tasks that have succeeded, and all tasks.
    pub succeeded: (u32, u32),
}

/// The runs of a namespace, or of all that may be seen; newest first.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<RunSummary>, RunsError> {
    let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])
        .map_err(longshore_client::Error::from)?;
    let (mut jobs, mut pods) = (
        cluster.jobs().labels(ours.clone()),
        cluster.pods().labels(ours),
    );
    if let Some(namespace) = namespace {
        jobs = jobs.in_namespace(namespace)?;
        pods = pods.in_namespace(namespace)?;
    }
    let (jobs, pods) = futures::try_join!(jobs.list(), pods.list())?;
    let read = |items: Vec<Item<Pod>>| -> Result<Vec<PodEvidence>, longshore_client::Error> {
        items.iter().map(Item::typed).collect()
    };
    let pods = read(pods.items)?;
    let jobs: Result<Vec<JobEvidence>, _> = jobs.items.iter().map(Item::typed).collect();
    Ok(summaries(&jobs?, &pods))
}

/// One run, by its name.
///
/// # Errors
/// [`RunsError::NoSuchRun`] and [`RunsError::Cluster`].
pub async fn find(cluster: &Cluster, namespace: &str, name: &str) -> Result<RunSummary, RunsError> {
    let runs = list(cluster, Some(namespace)).await?;
    if let Some(found) = runs
        .iter()
        .find(|summary| summary.run.name.as_str() == name)
    {
        return Ok(found.clone());
    }
    let nearest = runs
        .iter()
        .find(|summary| summary.run.name.as_str().starts_with(name));
    Err(RunsError::NoSuchRun {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        nearest: nearest.map(|summary| summary.run.name.to_string()),
    })
}

/// Groups Jobs and pods into runs, newest first. Pure.
fn summaries(jobs: &[JobEvidence], pods: &[PodEvidence]) -> Vec<RunSummary> {
    type Parts<'a> = (Vec<&'a JobEvidence>, Vec<&'a PodEvidence>);
    let mut runs: BTreeMap<(&str, &str), Parts<'_>> = BTreeMap::new();
    for job in jobs {
        if let Some(run) = job.metadata.labels.get(names::RUN) {
            runs.entry((&job.metadata.namespace, run))
                .or_default()
                .0
                .push(job);
        }
    }
    for pod in pods {
        let run = pod.metadata.labels.get(names::RUN);
        let known =
            run.and_then(|run| runs.get_mut(&(pod.metadata.namespace.as_str(), run.as_str())));
        if let Some(known) = known {
            known.1.push(pod);
        }
    }
    let mut summaries: Vec<RunSummary> = runs
        .into_iter()
        .filter_map(|((namespace, run), (jobs, pods))| summary(namespace, run, &jobs, &pods))
        .collect();
    summaries.sort_by(|a, b| {
        b.created
            .cmp(&a.created)
            .then_with(|| a.run.name.cmp(&b.run.name))
    });
    summaries
}

fn summary(
    namespace: &str,
    run: &str,
    jobs: &[&JobEvidence],
    pods: &[&PodEvidence],
) -> Option<RunSummary> {
    let first = jobs.first()?;
    let annotation = |key: &str| first.metadata.annotations.get(key).cloned();
    let list = |key| annotation(key).and_then(|text| serde_json::from_str(&text).ok());
    let declared: Option<Vec<RunRole>> =
        annotation(names::ROLES).and_then(|text| serde_json::from_str(&text).ok());
    let roles = declared.unwrap_or_else(|| {
        let role = |job: &&JobEvidence| {
            let count = job.spec.completions.unwrap_or(1);
            Some(RunRole {
                name: job.role()?.to_owned(),
                count,
                service: false,
            })
        };
        jobs.iter().filter_map(role).collect()
    });
    // Decided as a follower decides, from the same evidence.
    let began = first.metadata.creation_timestamp.unwrap_or(Timestamp::MIN);
    let seen = track::decide_now(&roles, jobs, pods, &Around::default(), began);
    let started = pods.iter().any(|pod| pod.has_started());
    let succeeded = seen.succeeded();
    let state = match &seen.outcome {
        Some(outcome) => match outcome.ending {
            crate::follow::Ending::Succeeded => RunState::Succeeded,
            crate::follow::Ending::Failed | crate::follow::Ending::NotStarted => RunState::Failed,
            crate::follow::Ending::Cancelled => RunState::Cancelled,
        },
        None if started => RunState::Running,
        None => RunState::Pending,
    };
    let finished = state.is_over().then(|| {
        let jobs = jobs.iter().filter_map(|job| {
            let failed = job
                .failure()
                .and_then(|condition| condition.last_transition_time);
            job.status.completion_time.or(failed)
        });
        jobs.chain(pods.iter().filter_map(|pod| pod.finished_at()))
            .max()
    });
    let total = roles
        .iter()
        .map(|role| role.count)
        .fold(0, u32::saturating_add);
    Some(RunSummary {
        full_name: annotation(names::FULL_NAME).unwrap_or_else(|| run.to_owned()),
        run: Run {
            name: RunName::existing(run).ok()?,
            namespace: namespace.to_owned(),
            roles,
        },
        state,
        created: jobs
            .iter()
            .filter_map(|job| job.metadata.creation_timestamp)
            .min(),
        finished: finished.flatten(),
        command: list(names::COMMAND).unwrap_or_default(),
        bundle: annotation(names::BUNDLE),
        exit_code: seen.outcome.map(|outcome| outcome.exit_code),
        succeeded: (succeeded, total),
    })
}

/// Stops a run and keeps its record: its Jobs are marked as cancelled and
/// suspended, so their pods end, and the Jobs stay for `runs`. A role that has
/// ended already is left as it is. Gives how many Jobs were stopped.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn cancel(cluster: &Cluster, run: &Run, now: Timestamp) -> Result<usize, RunsError> {
    let jobs = run.jobs(cluster)?.list().await?.items;
    let mut going_on = Vec::new();
    for job in &jobs {
        if !job.typed::<JobEvidence>()?.is_over() {
            going_on.push(job);
        }
    }
    let patch = suspension(json!({names::CANCELLED: now.to_string()}));
    futures::future::try_join_all(going_on.iter().map(|job| job.patch(&patch))).await?;
    Ok(going_on.len())
}

/// Stops the Job of one role of a run whose end is decided.
pub(crate) async fn stop_role(
    cluster: &Cluster,
    run: &Run,
    job: &str,
    reason: &str,
    why: Option<&Explanation>,
) -> Result<(), longshore_client::Error> {
    let mut notes = json!({names::STOPPED: reason});
    if let Some(why) = why.and_then(|why| serde_json::to_string(why).ok()) {
        notes[names::WHY] = why.into();
    }
    let patch = suspension(notes);
    let jobs = cluster.jobs().in_namespace(&run.namespace)?;
    jobs.patch(job, &patch).await.map(drop)
}

/// Suspending a Job ends its pods and keeps the Job.
fn suspension(annotations: Value) -> Patch {
    Patch::merge(json!({
        "metadata": {"annotations": annotations},
        "spec": {"suspend": true},
    }))
}

/// Deletes a run with all its objects, running or not.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn remove(cluster: &Cluster, run: &Run) -> Result<(), RunsError> {
    let options = DeleteOptions::background();
    let jobs = run.jobs(cluster)?;
    let services = cluster
        .services()
        .in_namespace(&run.namespace)?
        .labels(run.selector()?);
    let secrets = cluster
        .secrets()
        .in_namespace(&run.namespace)?
        .labels(run.selector()?);
    let (found_jobs, found_services, found_secrets) =
        futures::try_join!(jobs.list(), services.list(), secrets.list())?;
    // The Jobs own the rest, which goes with them; a submission that was cut
    // off may have left objects that nothing owns.
    for job in &found_jobs.items {
        job.delete(&options).await?;
    }
    for service in &found_services.items {
        service.delete(&options).await?;
    }
    for secret in &found_secrets.items {
        secret.delete(&options).await?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
