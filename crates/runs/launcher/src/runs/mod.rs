//! Existing runs. The cluster's objects contain their history.

mod code;
mod develop;
mod error;
mod filter;
mod json;
mod leftovers;
mod linger;
mod name;
pub mod objects;
mod pods;
mod record;
mod remove;
mod schedule;
mod stop;
mod summary;
mod tags;
mod task;
mod task_pod;
mod watch;

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use jiff::Timestamp;
use longshore_client::{
    Cluster, Item, LabelSelector, Object, View,
    kinds::{CronJob, Job, Pod},
};
pub use longshore_diagnosis::role::RunRole;
use longshore_diagnosis::{names, outcome::Outcome};
use longshore_model::ObjectMeta;
use serde::de::DeserializeOwned;

pub use code::{CodePlace, code_place};
pub use develop::{dev_record, next_dev_session};
pub use error::RunsError;
pub use filter::{FilterError, RunFilter, RunOrder, STATE_FILTERS, StateFilter};
pub use leftovers::{Leftover, leftovers};
pub use linger::end_lingering;
pub(crate) use linger::{LINGER, delete_pod, end_pod};
pub use name::{LAST, is_pattern, matching, pick};
pub use pods::WatchedPods;
#[cfg(test)]
pub(crate) use record::notes;
pub(crate) use record::record_end;
pub use remove::{remove, wait_for_pods};
pub use schedule::ScheduleSummary;
pub(crate) use stop::{Decided, stop_decided};
pub use stop::{cancel, resume, stop_leftovers, stop_with_cluster};
#[cfg(test)]
pub(crate) use summary::summaries;
pub use tags::{set_note, set_tags};
pub use task::TaskError;
pub use task_pod::TaskPod;
pub use watch::{RunPods, WatchedRuns};

use crate::owner::{Owner, Ownership};
pub use crate::run::Run;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// No task runs yet.
    Pending,
    /// At least one task has started.
    Running,
    /// All tasks have succeeded, except tasks of service roles, which do not count.
    Succeeded,
    /// A task failed.
    Failed,
    /// The user cancelled the run.
    Cancelled,
    /// A schedule, which creates runs.
    Scheduled,
    /// A schedule that was cancelled and creates no more runs.
    Paused,
}

impl RunState {
    /// All states.
    pub const ALL: &[Self] = &[
        Self::Pending,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
        Self::Scheduled,
        Self::Paused,
    ];

    /// The name of the state.
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

    /// Returns true if the run has ended.
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
    /// The name that the user specified.
    pub full_name: String,
    /// The state of the run.
    pub state: RunState,
    /// The time when the server created the run, in whole seconds.
    pub created: Option<Timestamp>,
    /// The time when the run was submitted, by the submitter's clock, in microseconds. Orders runs
    /// that were created in the same second.
    pub submitted: Option<Timestamp>,
    /// The user who submitted the run, if it records a valid one.
    pub owner: Option<Owner>,
    /// The time when the run ended.
    pub finished: Option<Timestamp>,
    /// The command of the first role.
    pub command: Vec<String>,
    /// The sha256 of the bundle.
    pub bundle: Option<String>,
    /// The user's labels.
    pub labels: BTreeMap<String, String>,
    /// The tags of the run.
    pub tags: BTreeMap<String, String>,
    /// The note about the run.
    pub note: Option<String>,
    /// The exit code, if the run has ended and the code is known.
    pub exit_code: Option<i32>,
    /// The outcome, if the run has ended.
    pub outcome: Option<Outcome>,
    /// The number of succeeded tasks, and of all tasks.
    pub succeeded: (u32, u32),
    /// The number of restarts of tasks with a new pod.
    pub restarts: u32,
    /// The reason why the webhook is not called, if it was queried.
    pub webhook_problem: Option<String>,
    /// The name of the sweep, if the run is a sweep or its retry.
    pub sweep: Option<String>,
    /// The schedule, if this is one.
    pub schedule: Option<ScheduleSummary>,
}

/// The runs of a namespace, or of all visible namespaces, newest first.
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<Vec<RunSummary>, RunsError> {
    list_matching(cluster, namespace, &LabelSelector::default()).await
}

/// Like [`list`], but only the runs whose labels match.
///
/// # Errors
/// [`RunsError::Cluster`].
pub fn list_matching<'a>(
    cluster: &'a Cluster,
    namespace: Option<&'a str>,
    selector: &'a LabelSelector,
) -> BoxFuture<'a, Result<Vec<RunSummary>, RunsError>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(list_and_summarize(cluster, namespace, selector))
}

async fn list_and_summarize(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &LabelSelector,
) -> Result<Vec<RunSummary>, RunsError> {
    let views = Views::new(cluster, namespace, selector)?;
    let schedules = async { if_allowed(views.schedules.list().await) };
    let (jobs, schedules) = futures::try_join!(views.jobs.list(), schedules)?;
    // List the pods last, so that pods that a Job counts as ended have ended.
    let pods = views.pods.list().await?;
    summarize(&jobs.items, &pods.items, &schedules)
}

/// The objects of runs.
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

/// Sorts newest first: by the server's seconds, then by the submitter's clock, then by name.
fn newest_first(runs: &mut [RunSummary]) {
    runs.sort_by(|a, b| {
        let newer = (b.created, b.submitted).cmp(&(a.created, a.submitted));
        newer.then_with(|| a.run.name.cmp(&b.run.name))
    });
}

/// The time when a run was submitted, by the submitter's clock.
fn submitted(meta: &ObjectMeta) -> Option<Timestamp> {
    meta.annotations.get(names::SUBMITTED)?.parse().ok()
}

/// The labels, except Longshore's, Kubernetes' and Kueue's.
fn user_labels(meta: &ObjectMeta) -> BTreeMap<String, String> {
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

/// Parses objects as evidence.
fn read<K: Object, T: DeserializeOwned>(
    items: &[Item<K>],
) -> Result<Vec<T>, longshore_client::Error> {
    items.iter().map(Item::typed).collect()
}

/// Returns an empty list of schedules without permission to list CronJobs.
pub(crate) fn if_allowed<K: Object>(
    found: Result<longshore_client::List<K>, longshore_client::Error>,
) -> Result<Vec<Item<K>>, longshore_client::Error> {
    match found {
        Ok(found) => Ok(found.items),
        Err(error) if error.is_forbidden() || error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Users whose runs may be selected by a prefix, a pattern or [`LAST`]. Each run can be selected by
/// its full name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Users {
    /// The current user.
    #[default]
    Mine,
    /// All users.
    All,
}

/// Like [`find`], but returns the last run that a schedule has created instead of the schedule.
///
/// # Errors
/// The same as [`find`], and [`RunsError::NotYet`].
pub async fn find_made(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    let me = whose(cluster, &all, &[name], Users::Mine).await?;
    pick_made(&all, namespace, name, me.as_ref()).cloned()
}

/// Like [`pick`], but returns the last run that a schedule has created instead of the schedule.
///
/// # Errors
/// The same as [`pick`], and [`RunsError::NotYet`].
pub fn pick_made<'a>(
    all: &'a [RunSummary],
    namespace: &str,
    name: &str,
    me: Option<&Owner>,
) -> Result<&'a RunSummary, RunsError> {
    made(all, pick(all, namespace, name, me)?)
}

/// The run itself, or the last run that a schedule has created.
///
/// # Errors
/// [`RunsError::NotYet`].
pub fn made<'a>(all: &'a [RunSummary], found: &'a RunSummary) -> Result<&'a RunSummary, RunsError> {
    let Some(schedule) = &found.schedule else {
        return Ok(found);
    };
    // The first run is the newest.
    let made = all
        .iter()
        .find(|run| run.run.schedule.as_ref() == Some(&found.run.name));
    made.ok_or_else(|| RunsError::NotYet {
        name: found.run.name.to_string(),
        next: schedule.next,
    })
}

/// Finds a run or schedule by its name, a unique prefix of the name, or [`LAST`], like [`pick`].
/// Prefixes and [`LAST`] select runs of the current user.
///
/// # Errors
/// [`RunsError::NoSuchRun`], [`RunsError::Ambiguous`], [`RunsError::NoRuns`],
/// [`RunsError::OfOthers`] and [`RunsError::Cluster`].
pub async fn find(cluster: &Cluster, namespace: &str, name: &str) -> Result<RunSummary, RunsError> {
    find_of(cluster, namespace, name, Users::Mine).await
}

/// Like [`find`], but among the runs of these users.
///
/// # Errors
/// The same as [`find`].
pub async fn find_of(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    users: Users,
) -> Result<RunSummary, RunsError> {
    let all = list(cluster, Some(namespace)).await?;
    let me = whose(cluster, &all, &[name], users).await?;
    pick(&all, namespace, name, me.as_ref()).cloned()
}

/// The user whose runs may be selected, as an argument of [`pick`] and [`matching`]. Queries the
/// cluster only if required: for a prefix, a pattern or [`LAST`].
///
/// # Errors
/// [`RunsError::Cluster`].
pub async fn whose(
    cluster: &Cluster,
    all: &[RunSummary],
    words: &[impl AsRef<str>],
    users: Users,
) -> Result<Option<Owner>, RunsError> {
    let is_name = |word: &str| all.iter().any(|run| run.run.name.as_str() == word);
    match users == Users::All || words.iter().all(|word| is_name(word.as_ref())) {
        true => Ok(None),
        false => Ok(Some(Owner::current(cluster).await?)),
    }
}

/// Checks before an action that a run belongs to the current user. A run that the same user has
/// just submitted needs no check.
///
/// # Errors
/// [`RunsError::NotOwn`] and [`RunsError::Cluster`].
pub async fn check_own(
    cluster: &Cluster,
    run: &Run,
    owner: Option<&Owner>,
) -> Result<(), RunsError> {
    let me = Owner::current(cluster).await?;
    match me.ownership(owner) {
        Ownership::Own => Ok(()),
        Ownership::Unknown | Ownership::Other => Err(RunsError::NotOwn {
            name: run.name.to_string(),
            owner: owner.cloned(),
            me,
        }),
    }
}

#[cfg(test)]
mod tests;
