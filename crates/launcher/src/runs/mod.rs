//! Runs that exist: their history is in the cluster's own objects.

mod schedule;
mod stop;
mod summary;

use jiff::Timestamp;
use longshore_client::{
    Cluster, Item, Kind, LabelSelector, View,
    kinds::{Job, Pod},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use schedule::ScheduleSummary;
pub(crate) use stop::stop;
pub use stop::{cancel, remove};

use crate::{
    evidence::{JobEvidence, Meta, PodEvidence},
    names::{self, RunName},
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
    /// A schedule that has made no run yet, or none that is still there.
    #[error("the schedule {name:?} has made no run that is still there{}", next.map(|next| format!("; the next is due at {next}")).unwrap_or_default())]
    NotYet {
        /// The schedule's name.
        name: String,
        /// When it makes the next.
        next: Option<Timestamp>,
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
    /// The schedule that made it, if one did: their objects share its label.
    pub schedule: Option<RunName>,
}

impl Run {
    /// The value of the run's label, on all its objects.
    #[must_use]
    pub fn label(&self) -> &str {
        self.schedule.as_ref().unwrap_or(&self.name).as_str()
    }

    /// Whether a pod or a Job with the run's label is of this run, and not of another
    /// that the same schedule has made.
    #[must_use]
    pub fn has(&self, meta: &Meta) -> bool {
        if self.schedule.is_none() {
            return true;
        }
        let job = meta.owner("Job").unwrap_or(&meta.name);
        let end = job.rsplit_once('-').map(|(_, end)| end);
        end == self.execution()
    }

    /// What tells it apart from the other runs of its schedule.
    #[must_use]
    pub fn execution(&self) -> Option<&str> {
        let name = self
            .name
            .as_str()
            .strip_prefix(self.schedule.as_ref()?.as_str())?;
        name.strip_prefix('-')
    }

    /// Its pods, as they are now.
    ///
    /// # Errors
    /// The cluster refuses, or does not answer.
    pub async fn list_pods(
        &self,
        cluster: &Cluster,
    ) -> Result<Vec<Item<Pod>>, longshore_client::Error> {
        let mut pods = self.pods(cluster)?.list().await?.items;
        if self.schedule.is_some() {
            let own = |pod: &Item<Pod>| {
                pod.typed::<PodEvidence>()
                    .is_ok_and(|pod| self.has(&pod.metadata))
            };
            pods.retain(own);
        }
        Ok(pods)
    }

    /// Selects the objects of the run, and those of others of its schedule.
    pub(crate) fn selector(&self) -> Result<LabelSelector, longshore_client::Error> {
        Ok(LabelSelector::exactly([(names::RUN, self.label())])?)
    }

    async fn found_jobs(
        &self,
        cluster: &Cluster,
    ) -> Result<Vec<JobEvidence>, longshore_client::Error> {
        let mut jobs: Vec<JobEvidence> = read(&self.jobs(cluster)?.list().await?.items)?;
        jobs.retain(|job| self.has(&job.metadata));
        Ok(jobs)
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
    /// It is a schedule, which makes runs.
    Scheduled,
    /// It is a schedule that was cancelled: it makes no runs.
    Paused,
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
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
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
    /// When it makes runs, if it is a schedule.
    pub schedule: Option<ScheduleSummary>,
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
        cluster.pods().labels(ours.clone()),
    );
    let mut schedules = cluster.cronjobs().labels(ours);
    if let Some(namespace) = namespace {
        jobs = jobs.in_namespace(namespace)?;
        pods = pods.in_namespace(namespace)?;
        schedules = schedules.in_namespace(namespace)?;
    }
    let schedules = async { if_allowed(schedules.list().await) };
    let (jobs, pods, schedules) = futures::try_join!(jobs.list(), pods.list(), schedules)?;
    let mut runs = summary::summaries(&read(&jobs.items)?, &read(&pods.items)?);
    runs.extend(schedule::summaries(&read(&schedules)?, Timestamp::now()));
    newest_first(&mut runs);
    Ok(runs)
}

fn newest_first(runs: &mut [RunSummary]) {
    runs.sort_by(|a, b| {
        b.created
            .cmp(&a.created)
            .then_with(|| a.run.name.cmp(&b.run.name))
    });
}

/// Objects as evidence.
fn read<K: Kind, T: DeserializeOwned>(
    items: &[Item<K>],
) -> Result<Vec<T>, longshore_client::Error> {
    items.iter().map(Item::typed).collect()
}

/// Who may not list CronJobs has no schedules.
fn if_allowed<K: Kind>(
    found: Result<longshore_client::List<K>, longshore_client::Error>,
) -> Result<Vec<Item<K>>, longshore_client::Error> {
    match found {
        Ok(found) => Ok(found.items),
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// One run, by its name; of a schedule the last run that it has made.
///
/// # Errors
/// As [`find`], and [`RunsError::NotYet`].
pub async fn find_made(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    let found = named(&all, namespace, name)?;
    let Some(schedule) = &found.schedule else {
        return Ok(found.clone());
    };
    // The newest is the first.
    let made = all
        .iter()
        .find(|run| run.run.schedule.as_ref() == Some(&found.run.name));
    made.cloned().ok_or_else(|| RunsError::NotYet {
        name: name.to_owned(),
        next: schedule.next,
    })
}

/// One run or schedule, by its name.
///
/// # Errors
/// [`RunsError::NoSuchRun`] and [`RunsError::Cluster`].
pub async fn find(cluster: &Cluster, namespace: &str, name: &str) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    named(&all, namespace, name).cloned()
}

fn named<'a>(
    runs: &'a [RunSummary],
    namespace: &str,
    name: &str,
) -> Result<&'a RunSummary, RunsError> {
    if let Some(found) = runs
        .iter()
        .find(|summary| summary.run.name.as_str() == name)
    {
        return Ok(found);
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

#[cfg(test)]
mod tests;
