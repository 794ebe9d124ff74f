//! The logs of pods that were deleted before they were seen, if the cluster keeps them.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use longshore_client::Cluster;
use longshore_diagnosis::{evidence::JobEvidence, names::Task};
use longshore_model::{ObjectMeta, facts::PodFacts};

use super::{
    GapCause,
    logs::{Container, Logs},
};
use crate::{
    run::Run,
    task_logs::{self, Evidence, KeptLogs, MissingLog, MissingReason, RunLogs, TaskLog},
};

/// The timeout of a list. The run is followed only afterwards.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a list is used again, because many attempts may be found missing at the same
/// time.
const LIST_AGE: Duration = Duration::from_millis(500);

/// The logs of deleted pods.
pub(super) struct DeletedLogs {
    cluster: Cluster,
    run: Run,
    /// The UIDs of the objects that own the logs of the run.
    owners: BTreeSet<String>,
    listed: Option<(Instant, Vec<KeptLogs>)>,
    /// True if the cluster keeps no logs of deleted pods, or logs are not read.
    is_unavailable: bool,
    /// The attempts whose logs are read.
    attempts: BTreeSet<(Task, u32)>,
    /// The UIDs of the pods of these attempts.
    uids: BTreeSet<String>,
}

/// An attempt whose pod was deleted before it was seen.
pub(super) enum Unseen {
    /// The log is to be read.
    Log(TaskLog),
    /// The attempt wrote nothing, or its log is already read.
    Nothing,
    /// The log is gone.
    Gone,
}

impl DeletedLogs {
    pub(super) fn new(cluster: &Cluster, run: &Run, reads_logs: bool) -> Self {
        Self {
            cluster: cluster.clone(),
            run: run.clone(),
            owners: BTreeSet::new(),
            listed: None,
            is_unavailable: !reads_logs,
            attempts: BTreeSet::new(),
            uids: BTreeSet::new(),
        }
    }

    /// Records a Job of the run.
    pub(super) fn see_job(&mut self, job: &ObjectMeta) {
        self.owners.insert(job.uid.clone());
        let controller = job.controller().map(|owner| owner.uid.clone());
        self.owners.extend(controller);
    }

    /// Finds the logs of the run with these objects.
    pub(super) async fn find(&mut self, pods: &[PodFacts], jobs: &[JobEvidence]) -> RunLogs {
        // A run that is about to be created has no logs.
        if self.is_unavailable || jobs.is_empty() {
            return RunLogs::default();
        }
        self.list().await;
        let kept = self.listed.as_ref().map(|(_, kept)| kept.as_slice());
        task_logs::choose(Evidence {
            run: &self.run,
            pods,
            jobs,
            kept,
            is_over: jobs.iter().all(task_logs::has_ended),
        })
    }

    /// Finds the log of an attempt whose pod no longer exists.
    pub(super) async fn attempt(&mut self, task: &Task, attempt: u32) -> Unseen {
        if self.attempts.contains(&(task.clone(), attempt)) {
            return Unseen::Nothing;
        }
        let is_new = |(at, _): &(Instant, _)| at.elapsed() < LIST_AGE;
        if !self.is_unavailable && !self.listed.as_ref().is_some_and(is_new) {
            self.list().await;
        }
        let Some((_, kept)) = self.listed.as_ref().filter(|_| !self.is_unavailable) else {
            return Unseen::Gone;
        };
        let of_run = kept
            .iter()
            .filter(|kept| self.owners.contains(kept.owner()));
        let mut logs = of_run.filter_map(KeptLogs::log);
        let found = logs.find(|log| log.task == *task && log.attempt == attempt);
        found.map_or(Unseen::Nothing, Unseen::Log)
    }

    async fn list(&mut self) {
        let listing = task_logs::list(&self.cluster, &self.run);
        self.listed = match tokio::time::timeout(LIST_TIMEOUT, listing).await {
            Ok(Ok(Some(kept))) => Some((Instant::now(), kept)),
            Ok(Ok(None)) => {
                self.is_unavailable = true;
                None
            }
            // The caller reports the missing logs.
            Ok(Err(error)) => {
                tracing::warn!(%error, "the logs of deleted pods cannot be listed");
                None
            }
            Err(_) => {
                tracing::warn!(
                    "the logs of deleted pods cannot be listed: the server does not answer"
                );
                None
            }
        };
    }

    /// Reads the log of a deleted pod.
    pub(super) fn read(&mut self, log: TaskLog, logs: &mut Logs) {
        let is_new = self.uids.insert(log.uid.clone());
        self.attempts.insert((log.task.clone(), log.attempt));
        if !is_new {
            return;
        }
        let uid = log.uid.clone();
        logs.read(Container {
            uid: log.uid,
            pod: log.pod,
            task: log.task,
            attempt: log.attempt,
            name: log.container,
            is_main: log.is_main,
        });
        logs.pod_ended(&uid);
    }
}

/// The cause to report for a missing log. `None` if nothing is lost, or if the loss is reported
/// when a later attempt is seen.
pub(super) fn gap(missing: &MissingLog) -> Option<GapCause> {
    match (&missing.reason, missing.attempt) {
        (MissingReason::Removed(_), _) => Some(GapCause::Removed),
        (_, None) if missing.is_loss() => Some(GapCause::PodDeleted),
        _ => None,
    }
}
