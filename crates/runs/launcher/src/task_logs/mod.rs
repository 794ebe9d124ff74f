//! The logs of a run's tasks: of existing pods, and of deleted pods if the cluster keeps them.
//!
//! Kubernetes removes the log of a pod with the pod. A Job deletes pods when one of its tasks
//! fails, when it is cancelled, and at its deadline. The embedded cluster keeps their logs until
//! the run is removed (`kept`). On other clusters, `choose` (pure) determines the missing logs.
//! Only [`TaskLog::options`] contains the request for a log, so that support for other sources,
//! such as archives, only changes that function.

mod choose;
mod deleted_pod;
mod kept;
#[cfg(test)]
mod tests;

use std::fmt;

use futures::future::BoxFuture;
use jiff::Timestamp;
use longshore_client::{Cluster, Error, Item, LogOptions};
use longshore_diagnosis::{evidence::JobEvidence, names::Task};
use longshore_model::facts::PodFacts;

pub(crate) use choose::{Evidence, choose, has_ended};
pub use deleted_pod::{DeletedPod, of_deleted_pod};
pub(crate) use kept::{KeptLogs, list};

use crate::run::Run;

/// The log of an attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLog {
    /// The task.
    pub task: Task,
    /// The number of the attempt of the task, from 1.
    pub attempt: u32,
    /// The name of the attempt's pod.
    pub pod: String,
    /// The UID of the attempt's pod.
    pub uid: String,
    /// The time when the pod was created.
    pub created: Option<Timestamp>,
    /// The container.
    pub container: String,
    /// True if the container runs the command. False for an init container that has failed.
    pub is_main: bool,
    /// True if the pod was deleted.
    pub is_deleted: bool,
    /// True if the cluster has removed the beginning, because the log has reached its maximum size.
    /// Only the embedded cluster reports this.
    pub is_cut: bool,
}

impl TaskLog {
    /// Options that select this log.
    #[must_use]
    pub fn options(&self) -> LogOptions {
        LogOptions {
            container: Some(self.container.clone()),
            uid: Some(self.uid.clone()),
            ..LogOptions::default()
        }
    }
}

/// A log that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLog {
    /// The task.
    pub task: Task,
    /// The number of the attempt, from 1. `None` if no log of the task exists.
    pub attempt: Option<u32>,
    /// The reason why the log does not exist.
    pub reason: MissingReason,
}

/// The reason why a log does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingReason {
    /// The pod was deleted, together with its log.
    PodDeleted,
    /// The cluster has no pod of a task that may have started before the run ended.
    NoPod,
    /// The cluster has removed the log, for this reason.
    Removed(String),
    /// The task has not started, so nothing is lost.
    NotStarted,
}

impl MissingLog {
    /// Returns true if lines that the task wrote are lost, or may be.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        self.reason != MissingReason::NotStarted
    }
}

impl fmt::Display for MissingLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = &self.task;
        if self.reason == MissingReason::NotStarted {
            return write!(f, "{task} has no log: it did not start");
        }
        match self.attempt {
            Some(attempt) => write!(f, "the log of attempt {attempt} of {task} is gone: ")?,
            None => write!(f, "the log of {task} is gone: ")?,
        }
        match &self.reason {
            MissingReason::Removed(why) => f.write_str(why),
            MissingReason::NoPod => f.write_str("its pod was deleted, or the task did not start"),
            _ => f.write_str("its pod was deleted, and its log with it"),
        }
    }
}

/// The logs of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLogs {
    /// The logs that exist, by task, and in the order of the attempts.
    pub logs: Vec<TaskLog>,
    /// The missing logs, by task.
    pub missing: Vec<MissingLog>,
}

/// Finds the logs of a run's tasks. `is_over` is true if the run has ended.
///
/// # Errors
/// The cluster returns an error or does not answer.
pub fn of_run<'a>(
    cluster: &'a Cluster,
    run: &'a Run,
    is_over: bool,
) -> BoxFuture<'a, Result<RunLogs, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(async move {
        // List the kept logs last, so that a pod that is deleted in between is in both lists
        // instead of none.
        let (jobs, pods) = run.list_jobs_and_pods(cluster).await?;
        let kept = list(cluster, run).await?;
        let pods: Vec<PodFacts> = pods.iter().map(Item::typed).collect::<Result<_, _>>()?;
        Ok(choose(Evidence {
            run,
            pods: &pods,
            jobs: &jobs,
            kept: kept.as_deref(),
            is_over,
        }))
    })
}

/// Returns the logs of the deleted pods of a run with these Jobs, in the order of their creation.
/// Empty if the cluster keeps no logs.
pub(crate) async fn deleted(
    cluster: &Cluster,
    run: &Run,
    jobs: &[JobEvidence],
) -> Result<Vec<TaskLog>, Error> {
    let kept = list(cluster, run).await?;
    let owners = kept::owners(jobs);
    let kept = kept.iter().flatten();
    let of_run = kept.filter(|kept| owners.contains(kept.owner()));
    let mut logs: Vec<TaskLog> = of_run.filter_map(KeptLogs::log).collect();
    logs.sort_by_key(|log| (log.created, log.attempt));
    Ok(logs)
}
