//! Runs that exist: their history is in the cluster's own objects.

mod code;
mod error;
mod name;
mod schedule;
mod stop;
mod summary;
mod task;
mod watch;

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{
    Cluster, Item, Kind, LabelSelector, View,
    kinds::{CronJob, Job, Pod},
};
use serde::de::DeserializeOwned;

pub use code::{CodePlace, code_place};
pub use error::RunsError;
pub use name::{LAST, pick};
pub use schedule::ScheduleSummary;
pub(crate) use stop::{Decided, stop_decided};
pub use stop::{cancel, remove, stop_leftovers, stop_with_cluster};
pub use task::TaskError;
pub use watch::WatchedRuns;

pub use crate::run::{Run, RunRole};

use crate::{evidence::Meta, names, outcome::Outcome};

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
    /// When the server created it, in whole seconds.
    pub created: Option<Timestamp>,
    /// When it was submitted by the submitter's clock, to the microsecond: the order
    /// of runs that were created in the same second.
    pub submitted: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// The command of its first role.
    pub command: Vec<String>,
    /// The sha256 of its bundle.
    pub bundle: Option<String>,
    /// The labels that the user gave it.
    pub labels: BTreeMap<String, String>,
    /// What it exited with, once it is over and known.
    pub exit_code: Option<i32>,
    /// How it ended, once it is over.
    pub outcome: Option<Outcome>,
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
    list_matching(cluster, namespace, &LabelSelector::default()).await
}

/// As [`list`], only those runs whose labels match.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn list_matching(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &LabelSelector,
) -> Result<Vec<RunSummary>, RunsError> {
    let views = Views::new(cluster, namespace, selector)?;
    let schedules = async { if_allowed(views.schedules.list().await) };
    let (jobs, pods, schedules) =
        futures::try_join!(views.jobs.list(), views.pods.list(), schedules)?;
    summarize(&jobs.items, &pods.items, &schedules)
}

/// The objects that runs are made of.
struct Views {
    jobs: View<Job>,
    pods: View<Pod>,
    schedules: View<CronJob>,
}

impl Views {
    fn new(
        cluster: &Cluster,
        namespace: Option<&str>,
        selector: &LabelSelector,
    ) -> Result<Self, longshore_client::Error> {
        let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])?;
        let wanted = ours.and(selector.clone());
        let mut views = Self {
            jobs: cluster.jobs().labels(wanted.clone()),
            pods: cluster.pods().labels(wanted.clone()),
            schedules: cluster.cronjobs().labels(wanted),
        };
        if let Some(namespace) = namespace {
            views = Self {
                jobs: views.jobs.in_namespace(namespace)?,
                pods: views.pods.in_namespace(namespace)?,
                schedules: views.schedules.in_namespace(namespace)?,
            };
        }
        Ok(views)
    }
}

fn summarize(
    jobs: &[Item<Job>],
    pods: &[Item<Pod>],
    schedules: &[Item<CronJob>],
) -> Result<Vec<RunSummary>, RunsError> {
    let mut runs = summary::summaries(&read(jobs)?, &read(pods)?);
    runs.extend(schedule::summaries(&read(schedules)?, Timestamp::now()));
    newest_first(&mut runs);
    Ok(runs)
}

/// Newest first: by the server's seconds, then by the submitter's clock; only what
/// neither tells apart by name.
fn newest_first(runs: &mut [RunSummary]) {
    runs.sort_by(|a, b| {
        let newer = (b.created, b.submitted).cmp(&(a.created, a.submitted));
        newer.then_with(|| a.run.name.cmp(&b.run.name))
    });
}

/// When the submitter's clock says that a run was submitted.
fn submitted(meta: &Meta) -> Option<Timestamp> {
    meta.annotations.get(names::SUBMITTED)?.parse().ok()
}

/// The labels that are neither ours nor Kubernetes' or Kueue's.
fn user_labels(meta: &Meta) -> BTreeMap<String, String> {
    let is_users = |key: &str| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        !["longshore.dev", "kubernetes.io", "x-k8s.io"]
            .iter()
            .any(|known| domain == *known || domain.ends_with(&format!(".{known}")))
            && !matches!(key, "job-name" | "controller-uid")
    };
    let labels = meta.labels.iter().filter(|(key, _)| is_users(key));
    labels
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Objects as evidence.
fn read<K: Kind, T: DeserializeOwned>(
    items: &[Item<K>],
) -> Result<Vec<T>, longshore_client::Error> {
    items.iter().map(Item::typed).collect()
}

/// Who may not list CronJobs has no schedules.
pub(crate) fn if_allowed<K: Kind>(
    found: Result<longshore_client::List<K>, longshore_client::Error>,
) -> Result<Vec<Item<K>>, longshore_client::Error> {
    match found {
        Ok(found) => Ok(found.items),
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// One run, by any word for it, as [`find`] takes them; of a schedule the last run
/// that it has made.
///
/// # Errors
/// As [`find`], and [`RunsError::NotYet`].
pub async fn find_made(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    pick_made(&all, namespace, name).cloned()
}

/// As [`pick`]; of a schedule the last run that it has made.
///
/// # Errors
/// As [`pick`], and [`RunsError::NotYet`].
pub fn pick_made<'a>(
    all: &'a [RunSummary],
    namespace: &str,
    name: &str,
) -> Result<&'a RunSummary, RunsError> {
    let found = pick(all, namespace, name)?;
    let Some(schedule) = &found.schedule else {
        return Ok(found);
    };
    // The newest is the first.
    let made = all
        .iter()
        .find(|run| run.run.schedule.as_ref() == Some(&found.run.name));
    made.ok_or_else(|| RunsError::NotYet {
        name: found.run.name.to_string(),
        next: schedule.next,
    })
}

/// One run or schedule, by its name, a beginning of it that no other has, or [`LAST`],
/// as [`pick`] reads them.
///
/// # Errors
/// [`RunsError::NoSuchRun`], [`RunsError::Ambiguous`], [`RunsError::NoRuns`] and
/// [`RunsError::Cluster`].
pub async fn find(cluster: &Cluster, namespace: &str, name: &str) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    pick(&all, namespace, name).cloned()
}

#[cfg(test)]
mod tests;
