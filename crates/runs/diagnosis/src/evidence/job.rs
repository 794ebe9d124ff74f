//! Jobs.

use jiff::Timestamp;
use longshore_model::{
    ObjectMeta,
    facts::{Condition, ContainerStatus, PodFacts, PodSpec},
};
use serde::Deserialize;
use serde_json::Value;

use super::{RunPod as _, index_set};
use crate::names;

/// The maximum number of completions of a Job with a backoff limit per index.
const MOST_INDICES: usize = 100_000;

/// A Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobEvidence {
    /// The Job's metadata.
    pub metadata: ObjectMeta,
    /// The Job's spec.
    pub spec: JobSpec,
    /// The Job's status.
    pub status: JobStatus,
}

/// A Job's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSpec {
    /// The number of tasks.
    pub completions: Option<u32>,
    pub(crate) parallelism: Option<u32>,
    pub(crate) active_deadline_seconds: Option<i64>,
    /// The number of failures that are retried.
    pub(crate) backoff_limit: Option<u32>,
    /// The number of failures of each task that are retried, if a task that fails does not end
    /// the others.
    pub backoff_limit_per_index: Option<u32>,
    /// True if the Job's pods are deleted and none are created.
    pub suspend: bool,
    pub(crate) pod_failure_policy: Option<PodFailurePolicy>,
    /// The template of the Job's pods.
    pub template: Template,
}

/// Rules for failed pods that do not count, or that end the Job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PodFailurePolicy {
    rules: Vec<FailureRule>,
}

/// A rule of a [`PodFailurePolicy`]. The first rule that matches applies.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FailureRule {
    action: String,
    on_exit_codes: Option<ExitCodes>,
    on_pod_conditions: Vec<Condition>,
}

/// The exit codes of a [`FailureRule`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExitCodes {
    container_name: String,
    operator: String,
    values: Vec<i32>,
}

impl PodFailurePolicy {
    /// Returns true if the Job fails with any failure of the command.
    fn ends_after_any_failure(&self) -> bool {
        let concerns = |codes: &ExitCodes| {
            let is_main = matches!(codes.container_name.as_str(), "" | names::MAIN);
            is_main && codes.operator == "NotIn" && codes.values == [0]
        };
        let mut rules = self.rules.iter();
        rules.any(|rule| {
            rule.action == "FailJob" && rule.on_exit_codes.as_ref().is_some_and(concerns)
        })
    }
}

impl FailureRule {
    fn applies(&self, pod: &PodFacts) -> bool {
        if let Some(codes) = &self.on_exit_codes {
            let concerns = |status: &&ContainerStatus| {
                codes.container_name.is_empty() || codes.container_name == status.name
            };
            let ended = pod.statuses().filter(concerns);
            let mut ended = ended.filter_map(|status| status.state.terminated.as_ref());
            return ended.any(|ended| {
                let has = codes.values.contains(&ended.exit_code);
                has == (codes.operator == "In") && ended.exit_code != 0
            });
        }
        let mut conditions = self.on_pod_conditions.iter();
        conditions.any(|wanted| pod.condition(&wanted.kind).is_some())
    }
}

/// A Job's pod template.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Template {
    /// The spec of the pods.
    pub spec: PodSpec,
}

/// A Job's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) active: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// The indices of the tasks that succeeded, as in [`index_set`](super::index_set).
    pub completed_indexes: String,
    /// The indices of the tasks that failed, if a failed task does not end the others.
    pub failed_indexes: String,
    /// The time when the Job was started or resumed.
    pub(crate) start_time: Option<Timestamp>,
    /// The time when the Job completed.
    pub completion_time: Option<Timestamp>,
}

/// A CronJob.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CronJobEvidence {
    /// The CronJob's metadata.
    pub metadata: ObjectMeta,
    /// The CronJob's spec.
    pub spec: CronJobSpec,
    /// The CronJob's status.
    pub status: CronJobStatus,
}

/// A CronJob's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobSpec {
    /// The schedule in cron format.
    pub schedule: String,
    /// The time zone of the schedule.
    pub time_zone: Option<String>,
    /// True if no further Jobs are created.
    pub suspend: bool,
}

/// A CronJob's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CronJobStatus {
    /// References to its active Jobs.
    pub active: Vec<Value>,
    /// The last time for which a Job was created.
    pub last_schedule_time: Option<Timestamp>,
}

impl JobEvidence {
    /// The JobSet that owns the Job.
    #[must_use]
    pub fn jobset(&self) -> Option<&str> {
        self.metadata.controller_name(names::JOBSET)
    }

    /// The Kueue queue that admits the Job or its JobSet.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        self.metadata.labels.get(names::QUEUE).map(String::as_str)
    }

    /// The uid of the object in the queue: the JobSet that owns the Job, or the Job.
    #[must_use]
    pub fn queued_uid(&self) -> &str {
        let set = self.metadata.controller();
        let set = set.filter(|owner| owner.kind == names::JOBSET);
        set.map_or(&self.metadata.uid, |owner| &owner.uid)
    }

    /// The role that the Job runs.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.metadata.labels.get(names::ROLE).map(String::as_str)
    }

    fn condition(&self, kinds: [&str; 2]) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| {
            condition.status == "True" && kinds.contains(&condition.kind.as_str())
        })
    }

    /// Returns true if all tasks of the Job have succeeded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.condition(["Complete", "SuccessCriteriaMet"]).is_some()
    }

    /// The condition that reports the Job's failure, if the Job has failed and is not created
    /// again.
    #[must_use]
    pub fn failure(&self) -> Option<&Condition> {
        self.any_failure()
            .filter(|failure| !self.may_be_created_again(failure))
    }

    /// The condition that reports the Job's failure, if the Job has failed.
    fn any_failure(&self) -> Option<&Condition> {
        self.condition(["Failed", "FailureTarget"])
    }

    /// Returns true if the Job failed, and its JobSet creates it again.
    pub(crate) fn is_created_again(&self) -> bool {
        let failure = self.any_failure();
        failure.is_some_and(|failure| self.may_be_created_again(failure))
    }

    /// Returns true if the JobSet creates the Job again after this failure, because its limit of
    /// restarts is not reached, or the failure does not count.
    fn may_be_created_again(&self, failure: &Condition) -> bool {
        self.set_restarts()
            .is_some_and(|(restarts, most)| failure.reason == "PodFailurePolicy" || restarts < most)
    }

    /// The number of restarts of the Job's JobSet, and its limit. `None` if the JobSet does not
    /// restart.
    pub(crate) fn set_restarts(&self) -> Option<(u32, u32)> {
        let number = |text: Option<&String>| text.and_then(|text| text.parse::<u32>().ok());
        let most = number(self.metadata.annotations.get(names::MAX_RESTARTS));
        let most = most.filter(|_| self.jobset().is_some())?;
        let restarts = number(self.metadata.labels.get(names::SET_RESTARTS));
        Some((restarts.unwrap_or(0), most))
    }

    /// The time when the Job completed or failed.
    #[must_use]
    pub fn over_since(&self) -> Option<Timestamp> {
        let ends = self.status.conditions.iter().filter(|condition| {
            condition.status == "True" && matches!(condition.kind.as_str(), "Complete" | "Failed")
        });
        let ends = ends.filter(|_| !self.is_created_again());
        ends.filter_map(|condition| condition.last_transition_time)
            .min()
    }

    /// Returns true if the Job has completed or failed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_complete() || self.failure().is_some()
    }

    /// Returns true if the user cancelled the Job.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.metadata.annotations.contains_key(names::CANCELLED)
    }

    /// Returns true if the Job was stopped with its run before it ended by itself.
    pub(crate) fn is_stopped(&self) -> bool {
        let noted = self.metadata.annotations.contains_key(names::STOPPED);
        noted && self.spec.suspend && !self.is_over()
    }

    /// The time when the Job was stopped with its run. See [`names::STOPPED`].
    #[must_use]
    pub fn stopped_at(&self) -> Option<Timestamp> {
        let text = self.metadata.annotations.get(names::STOPPED)?;
        text.split_once(": ")?.0.parse().ok()
    }

    /// The time when the user cancelled the Job.
    #[must_use]
    pub fn cancelled_at(&self) -> Option<Timestamp> {
        self.metadata
            .annotations
            .get(names::CANCELLED)?
            .parse()
            .ok()
    }

    /// Returns true if the tasks of the Job are independent, like the tasks of a sweep: a failed
    /// task does not end the others.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        self.spec.backoff_limit_per_index.is_some()
            && self.metadata.labels.contains_key(names::SWEEP)
    }

    /// Returns true if a failed task restarts all tasks of the run.
    #[must_use]
    pub fn restarts_all(&self) -> bool {
        let what = self.metadata.annotations.get(names::RESTART);
        what.is_some_and(|what| what == names::WHOLE_RUN)
    }

    /// The action of the Job's pod failure policy for a failed pod.
    fn action(&self, pod: &PodFacts) -> Option<&str> {
        let policy = self.spec.pod_failure_policy.as_ref()?;
        let rule = policy.rules.iter().find(|rule| rule.applies(pod))?;
        Some(&rule.action)
    }

    /// Returns true if a failed pod does not count, because it was disrupted.
    #[must_use]
    pub fn ignores(&self, pod: &PodFacts) -> bool {
        self.action(pod) == Some("Ignore")
    }

    /// Returns true if a failed pod is not replaced, because of its exit code.
    #[must_use]
    pub fn never_retries(&self, pod: &PodFacts) -> bool {
        matches!(self.action(pod), Some("FailJob" | "FailIndex"))
    }

    /// Returns true if the Job does not restart a task that has failed this often.
    pub(crate) fn gives_up(&self, failures: usize) -> bool {
        let limit = self.spec.backoff_limit_per_index;
        let is_last = match limit.map(usize::try_from) {
            // Failures of other tasks count, too.
            Some(_) if self.restarts_all() => false,
            Some(limit) => limit.is_ok_and(|limit| failures > limit),
            None if self.set_restarts().is_some() => false,
            None => self.spec.backoff_limit == Some(0),
        };
        is_last || self.failure().is_some()
    }

    /// Returns true if the Job fails because of a task that has failed this often, last with this
    /// pod.
    pub(crate) fn ends_with(&self, pod: &PodFacts, failures: usize) -> bool {
        let limit = match self.spec.backoff_limit_per_index {
            // Failures of all tasks count.
            Some(_) if self.restarts_all() => return true,
            None if self.spec.backoff_limit != Some(0) => return true,
            limit => limit.unwrap_or(0),
        };
        self.never_retries(pod) || usize::try_from(limit).is_ok_and(|limit| failures > limit)
    }

    /// The number of tasks that run at the same time until the Job ends.
    pub(crate) fn wanted(&self) -> u32 {
        let completions = self.spec.completions.unwrap_or(1);
        let parallelism = self.spec.parallelism.unwrap_or(completions);
        if !self.is_independent() {
            return parallelism;
        }
        let count = usize::try_from(completions).unwrap_or_default();
        let failed = index_set(&self.status.failed_indexes, count.min(MOST_INDICES));
        let failed = failed.iter().filter(|is_failed| **is_failed).count();
        let ended = u32::try_from(failed).unwrap_or(u32::MAX);
        let ended = ended.saturating_add(self.status.succeeded);
        parallelism.min(completions.saturating_sub(ended))
    }

    /// Returns true if the Job fails by itself when a task has failed.
    #[must_use]
    pub fn fails_by_itself(&self) -> bool {
        let policy = self.spec.pod_failure_policy.as_ref();
        let fails = (self.spec.backoff_limit == Some(0) || self.is_independent())
            && policy.is_none()
            || policy.is_some_and(PodFailurePolicy::ends_after_any_failure);
        fails && self.jobset().is_none()
    }
}
