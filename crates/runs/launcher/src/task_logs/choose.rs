//! Decides which logs of a run exist, and which are missing. Pure.

use std::collections::{BTreeMap, BTreeSet};

use longshore_diagnosis::{
    evidence::{JobEvidence, RunPod as _, index_set},
    names::Task,
    role::RunRole,
};
use longshore_model::facts::PodFacts;

use super::{KeptLogs, MissingLog, MissingReason, RunLogs, TaskLog, kept::owners};
use crate::run::Run;

/// The maximum number of earlier attempts of a task that are reported as missing. Any client can
/// write the counts of a pod.
const MOST_ATTEMPTS: u32 = 100;

/// The evidence about the logs of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub(crate) run: &'a Run,
    /// The existing pods.
    pub(crate) pods: &'a [PodFacts],
    pub(crate) jobs: &'a [JobEvidence],
    /// The kept logs. `None` if the cluster keeps no logs of deleted pods.
    pub(crate) kept: Option<&'a [KeptLogs]>,
    /// True if the run has ended.
    pub(crate) is_over: bool,
}

/// The logs of a task.
#[derive(Debug, Default)]
struct TaskLogs {
    logs: Vec<TaskLog>,
    /// The reasons why logs were removed, by attempt.
    removed: BTreeMap<u32, String>,
}

/// The start of a task without a pod, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    Yes,
    Perhaps,
    No,
}

/// Returns true if a Job creates no more pods.
pub(crate) fn has_ended(job: &JobEvidence) -> bool {
    job.is_over() || job.is_cancelled() || job.stopped_at().is_some()
}

/// Decides which logs exist, and which are missing.
pub(crate) fn choose(evidence: Evidence<'_>) -> RunLogs {
    let mut tasks = tasks(&evidence);
    let mut missing = Vec::new();
    for role in &evidence.run.roles {
        for (index, started) in (0..).zip(started(&evidence, role)) {
            let task = Task {
                role: role.name.clone(),
                index,
            };
            let logs = tasks.entry(task.clone()).or_default();
            missing.extend(logs.missing(&task, started, evidence.kept.is_some()));
        }
    }
    let logs = tasks.into_values().flat_map(|mut task| {
        task.logs.sort_by_key(|log| (log.created, log.attempt));
        task.logs
    });
    RunLogs {
        logs: logs.collect(),
        missing,
    }
}

/// The logs of each task that has or had a pod.
fn tasks(evidence: &Evidence<'_>) -> BTreeMap<Task, TaskLogs> {
    let mut tasks: BTreeMap<Task, TaskLogs> = BTreeMap::new();
    let kept = evidence.kept.unwrap_or_default();
    let of_pod: BTreeMap<&str, &KeptLogs> = kept.iter().map(|kept| (kept.uid(), kept)).collect();
    let mut present = BTreeSet::new();
    for pod in evidence.pods {
        let Some(task) = pod.task() else { continue };
        let uid = pod.metadata.uid.as_str();
        present.insert(uid);
        let container = pod.main_name();
        let log = TaskLog {
            task: task.clone(),
            attempt: pod.attempts_before().saturating_add(1),
            pod: pod.metadata.name.clone(),
            uid: uid.to_owned(),
            created: pod.metadata.creation_timestamp,
            container: container.to_owned(),
            is_main: true,
            is_deleted: false,
            is_cut: of_pod.get(uid).is_some_and(|kept| kept.is_cut(container)),
        };
        tasks.entry(task).or_default().logs.push(log);
    }
    let owners = owners(evidence.jobs);
    // The logs of a removed run with the same name have another owner.
    let is_deleted =
        |kept: &&KeptLogs| !present.contains(kept.uid()) && owners.contains(kept.owner());
    for kept in kept.iter().filter(is_deleted) {
        let pod = kept.pod();
        let Some(task) = pod.task() else { continue };
        let logs = tasks.entry(task).or_default();
        match &kept.removed {
            Some(why) => {
                let attempt = pod.attempts_before().saturating_add(1);
                logs.removed.insert(attempt, why.clone());
            }
            None => logs.logs.extend(kept.log()),
        }
    }
    tasks
}

/// The start of each task of a role, as far as it is known without their pods.
fn started(evidence: &Evidence<'_>, role: &RunRole) -> Vec<Started> {
    let of_role = |job: &&JobEvidence| job.role() == Some(role.name.as_str());
    let job = evidence.jobs.iter().find(of_role);
    let count = job.and_then(|job| job.spec.completions);
    let count = usize::try_from(count.unwrap_or(role.count)).unwrap_or_default();
    let is_complete = job.is_some_and(JobEvidence::is_complete);
    let ended = |set: fn(&JobEvidence) -> &str| index_set(job.map_or("", set), count);
    let succeeded = ended(|job| &job.status.completed_indexes);
    let failed = ended(|job| &job.status.failed_indexes);
    let state = |(succeeded, failed)| match is_complete || succeeded || failed {
        true => Started::Yes,
        false if evidence.is_over => Started::Perhaps,
        false => Started::No,
    };
    succeeded.into_iter().zip(failed).map(state).collect()
}

impl TaskLogs {
    /// The missing logs of the task. `keeps` is true if the cluster keeps the logs of deleted pods.
    fn missing(&self, task: &Task, started: Started, keeps: bool) -> Vec<MissingLog> {
        let of = |attempt, reason| MissingLog {
            task: task.clone(),
            attempt,
            reason,
        };
        if self.logs.is_empty() && self.removed.is_empty() {
            let reason = match started {
                Started::Yes => MissingReason::PodDeleted,
                Started::Perhaps if keeps => MissingReason::NotStarted,
                Started::Perhaps => MissingReason::NoPod,
                Started::No => return Vec::new(),
            };
            return vec![of(None, reason)];
        }
        let removed = self.removed.iter();
        let removed = removed.map(|(attempt, why)| {
            let reason = MissingReason::Removed(why.clone());
            of(Some(*attempt), reason)
        });
        let mut missing: Vec<MissingLog> = removed.collect();
        if !keeps {
            let attempts: BTreeSet<u32> = self.logs.iter().map(|log| log.attempt).collect();
            let last = attempts.last().copied().unwrap_or(1);
            let first = last.saturating_sub(MOST_ATTEMPTS).max(1);
            let unknown = (first..last).filter(|attempt| !attempts.contains(attempt));
            missing.extend(unknown.map(|attempt| of(Some(attempt), MissingReason::PodDeleted)));
        }
        missing
    }
}
