//! Decides what a Job needs next. Pure: from the Job, its pods and the time
//! to pods to make, to delete and to release, and the status to store.

use std::{cmp::Reverse, collections::HashSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobStatus};

use super::{
    backoff::{BackoffLimits, Failures},
    conditions::{self, whole_seconds},
    facts::{Phase, PodFacts},
    failure_policy::Verdict,
    indexes::IndexSet,
    names,
    pods::NewPod,
    spec::Wishes,
    tally::{self, Tally},
};
use crate::events::Severity;

/// Most pods made or deleted at a time, as in Kubernetes.
const LARGEST_STEP: u64 = 500;

/// What the decision is made from.
pub(crate) struct Observed<'a> {
    /// The newest Job known.
    pub(crate) job: &'a Job,
    /// The pods it controls.
    pub(crate) pods: &'a [&'a PodFacts],
    /// Failures in a row before this decision.
    pub(crate) failures: Failures,
    /// Waits between tries.
    pub(crate) limits: BackoffLimits,
    /// The present.
    pub(crate) now: Timestamp,
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Removal {
    /// The pod.
    pub(crate) pod: PodFacts,
    /// Take its finalizer off first, so that it does not count as failed.
    pub(crate) uncounted: bool,
}

/// Something to tell in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Normal or warning.
    pub(crate) severity: Severity,
    /// One word for programs.
    pub(crate) reason: String,
    /// A sentence for people.
    pub(crate) message: String,
}

/// What is to be done, in this order: pods made and deleted, status stored,
/// events told, finalizers taken off.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    /// Pods to make.
    pub(crate) create: Vec<NewPod>,
    /// Pods to delete.
    pub(crate) delete: Vec<Removal>,
    /// The status to store.
    pub(crate) status: JobStatus,
    /// Events to tell once the status is stored.
    pub(crate) notices: Vec<Notice>,
    /// Pods whose finalizer may go once the status is stored.
    pub(crate) release: Vec<PodFacts>,
    /// Failures in a row, once the status is stored.
    pub(crate) failures: Failures,
    /// Look again after this long.
    pub(crate) again: Option<Duration>,
    /// The Job's time after its end is over: delete it.
    pub(crate) expire: bool,
}

impl Plan {
    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |sooner| sooner.min(after)));
    }

    fn tell(&mut self, severity: Severity, reason: &str, message: &str) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.notices.push(Notice {
            severity,
            reason,
            message,
        });
    }
}

/// The decision; `None` for a Job without a spec.
pub(crate) fn plan(observed: &Observed<'_>) -> Option<Plan> {
    let &Observed {
        job,
        pods,
        failures,
        limits,
        now,
    } = observed;
    let wishes = Wishes::of(job)?;
    let mut plan = Plan {
        failures,
        ..Plan::default()
    };
    let mut status = job.status.clone().unwrap_or_default();
    if conditions::is_finished(&status) {
        plan.release = pods
            .iter()
            .filter(|pod| pod.tracked)
            .map(|pod| (*pod).clone())
            .collect();
        expire(&mut plan, &status, &wishes, now);
        plan.status = status;
        return Some(plan);
    }
    let deleting = job.metadata.deletion_timestamp.is_some();
    if status.start_time.is_none() && !wishes.suspended {
        status.start_time = Some(whole_seconds(now));
    }
    tally::settle(&mut status, &wishes, pods);
    let tally = tally::tally(&mut status, &wishes, pods, failures, now);
    plan.failures = tally.failures;

    if target(&status).is_none() {
        if let Some((kind, reason, message)) = verdict(&wishes, &status, &tally, now) {
            conditions::set(&mut status, kind, true, reason, &message, now);
        }
        watch_deadline(&mut plan, &wishes, &status, now);
    }
    let ending = target(&status).is_some();
    if ending {
        plan.delete = removals(&tally.active, false);
    } else if !deleting {
        suspend(&mut plan, &mut status, &wishes, now);
        if wishes.suspended {
            plan.delete = removals(&tally.active, true);
        } else {
            scale(&mut plan, &wishes, &tally, limits, now);
        }
    }
    let mut release = tally.release.clone();
    if ending || deleting {
        release.extend(tally.replace.values().map(|(pod, _)| *pod));
    }
    plan.release = release.into_iter().cloned().collect();

    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    // Zeros of these two are left out, as the real server does.
    status.active = Some(number(tally.active.len())).filter(|count| *count > 0);
    status.ready = Some(number(tally.ready));
    status.terminating = Some(number(tally.terminating.len()));
    if wishes.indexed {
        let succeeded = i32::try_from(tally.completed.len()).unwrap_or(i32::MAX);
        status.succeeded = Some(succeeded).filter(|count| *count > 0);
        status.completed_indexes = some_text(&tally.completed);
        if wishes.backoff_limit_per_index.is_some() {
            status.failed_indexes = Some(tally.failed_indexes.to_string());
        }
    }
    let quiet = tally.active.is_empty() && tally.terminating.is_empty();
    if quiet && plan.release.is_empty() && tally.replace.is_empty() {
        conclude(&mut plan, &mut status, now);
    }
    plan.status = status;
    Some(plan)
}

fn some_text(set: &IndexSet) -> Option<String> {
    (set.len() > 0).then(|| set.to_string())
}

/// The condition that says how the Job is about to end: its type, reason and
/// message.
fn target(status: &JobStatus) -> Option<(&'static str, String, String)> {
    [names::FAILURE_TARGET, names::SUCCESS_CRITERIA_MET]
        .into_iter()
        .find_map(|kind| {
            let condition = conditions::find(status, kind)?;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Some((kind, text(&condition.reason), text(&condition.message)))
        })
}

/// Whether it is decided that the Job ends.
pub(crate) fn is_decided(status: Option<&JobStatus>) -> bool {
    status.is_some_and(|status| target(status).is_some())
}

type Ending = (&'static str, &'static str, String);

/// Whether the Job is to end now, how and why.
fn verdict(
    wishes: &Wishes<'_>,
    status: &JobStatus,
    tally: &Tally<'_>,
    now: Timestamp,
) -> Option<Ending> {
    let fail = |reason, message: &str| Some((names::FAILURE_TARGET, reason, message.to_owned()));
    if let Some(message) = &tally.fail_job {
        return fail("PodFailurePolicy", message);
    }
    if tally.failed > wishes.backoff_limit || restarts_exhausted(wishes, tally) {
        let message = "Job has reached the specified backoff limit";
        return fail("BackoffLimitExceeded", message);
    }
    if remaining_time(wishes, status, now) == Some(Duration::ZERO) {
        let message = "Job was active longer than specified deadline";
        return fail("DeadlineExceeded", message);
    }
    if wishes.backoff_limit_per_index.is_some() {
        let failed = tally.failed_indexes.len();
        let most = wishes
            .spec
            .max_failed_indexes
            .and_then(|most| u64::try_from(most).ok());
        if most.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return fail("MaxFailedIndexesExceeded", message);
        }
        let all = u64::from(wishes.completions.unwrap_or(0));
        if failed > 0 && failed + tally.completed.len() >= all {
            return fail("FailedIndexes", "Job has failed indexes");
        }
    }
    let met = |reason, message: String| Some((names::SUCCESS_CRITERIA_MET, reason, message));
    if let Some(rule) = success_rule(wishes, &tally.completed) {
        return met("SuccessPolicy", format!("Matched rules at index {rule}"));
    }
    let complete = tally.active.is_empty()
        && match wishes.completions {
            Some(completions) => tally.succeeded >= u64::from(completions),
            None => tally.succeeded > 0,
        };
    if complete && !wishes.suspended {
        return met(
            "CompletionsReached",
            "Reached expected number of succeeded pods".to_owned(),
        );
    }
    None
}

/// With restartPolicy OnFailure, restarts of containers count as tries.
fn restarts_exhausted(wishes: &Wishes<'_>, tally: &Tally<'_>) -> bool {
    let policy = wishes
        .spec
        .template
        .spec
        .as_ref()
        .and_then(|pod| pod.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let pods = tally.active.iter().chain(&tally.terminating);
    let restarts: i64 = pods.map(|pod| pod.restarts).sum();
    let restarts = u64::try_from(restarts).unwrap_or(0);
    restarts > 0 && restarts >= wishes.backoff_limit
}

/// The first rule of the success policy that is met.
fn success_rule(wishes: &Wishes<'_>, completed: &IndexSet) -> Option<usize> {
    let rules = &wishes
        .spec
        .success_policy
        .as_ref()
        .filter(|_| wishes.indexed)?
        .rules;
    rules.iter().position(|rule| {
        let count = rule
            .succeeded_count
            .and_then(|count| u64::try_from(count).ok());
        let indexes: Option<IndexSet> = rule
            .succeeded_indexes
            .as_deref()
            .and_then(|text| text.parse().ok());
        match (indexes, count) {
            (Some(indexes), Some(count)) => completed.common(&indexes) >= count,
            (Some(indexes), None) => completed.common(&indexes) == indexes.len(),
            (None, Some(count)) => completed.len() >= count,
            (None, None) => false,
        }
    })
}

/// What is left of activeDeadlineSeconds.
fn remaining_time(wishes: &Wishes<'_>, status: &JobStatus, now: Timestamp) -> Option<Duration> {
    let limit = wishes
        .spec
        .active_deadline_seconds
        .filter(|_| !wishes.suspended)?;
    let limit = Duration::from_secs(u64::try_from(limit).unwrap_or(0));
    Some(limit.saturating_sub(since(status.start_time.as_ref()?.0, now)))
}

fn since(start: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(start)).unwrap_or(Duration::ZERO)
}

fn watch_deadline(plan: &mut Plan, wishes: &Wishes<'_>, status: &JobStatus, now: Timestamp) {
    if let Some(left) = remaining_time(wishes, status, now).filter(|left| !left.is_zero()) {
        plan.look_again(left);
    }
}

/// Writes the condition Suspended; a Job that resumes starts anew.
fn suspend(plan: &mut Plan, status: &mut JobStatus, wishes: &Wishes<'_>, now: Timestamp) {
    if wishes.suspended {
        let message = "Job suspended";
        if conditions::set(status, names::SUSPENDED, true, "JobSuspended", message, now) {
            plan.tell(Severity::Normal, "Suspended", message);
        }
    } else if conditions::set(
        status,
        names::SUSPENDED,
        false,
        "JobResumed",
        "Job resumed",
        now,
    ) {
        status.start_time = Some(whole_seconds(now));
        plan.tell(Severity::Normal, "Resumed", "Job resumed");
    }
}

fn removals(pods: &[&PodFacts], uncounted: bool) -> Vec<Removal> {
    let removal = |pod: &&PodFacts| Removal {
        pod: (*pod).clone(),
        uncounted,
    };
    pods.iter()
        .take(usize::try_from(LARGEST_STEP).unwrap_or(usize::MAX))
        .map(removal)
        .collect()
}

/// Makes or deletes pods until as many are active as are wanted.
fn scale(
    plan: &mut Plan,
    wishes: &Wishes<'_>,
    tally: &Tally<'_>,
    limits: BackoffLimits,
    now: Timestamp,
) {
    let active = tally.active.len() as u64;
    let wanted = match wishes.completions {
        Some(completions) => {
            let over = tally.succeeded + tally.failed_indexes.len();
            u64::from(completions)
                .saturating_sub(over)
                .min(wishes.parallelism)
        }
        None if tally.succeeded > 0 => active.min(wishes.parallelism),
        None => wishes.parallelism,
    };
    let surplus = surplus(wishes, tally, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        plan.delete = removals(&surplus, true);
        return;
    }
    let going = if wishes.replace_only_failed {
        tally.terminating.len() as u64
    } else {
        0
    };
    let missing = wanted.saturating_sub(active + going).min(LARGEST_STEP);
    if missing == 0 {
        return;
    }
    if wishes.backoff_limit_per_index.is_some() {
        create_indexed(plan, wishes, tally, missing, |pod| {
            let failures = pod.index_failures + pod.index_ignored + 1;
            let failures = u32::try_from(failures).unwrap_or(u32::MAX);
            limits.remaining(failures, pod.finished.unwrap_or(now), now)
        });
        return;
    }
    let wait = tally.failures.remaining(limits, now);
    if !wait.is_zero() {
        plan.look_again(wait);
    } else if wishes.indexed {
        create_indexed(plan, wishes, tally, missing, |_| Duration::ZERO);
    } else {
        plan.create = (0..missing).map(|_| NewPod::default()).collect();
    }
}

/// Makes pods for the lowest indexes that need one and need not wait.
fn create_indexed(
    plan: &mut Plan,
    wishes: &Wishes<'_>,
    tally: &Tally<'_>,
    missing: u64,
    wait: impl Fn(&PodFacts) -> Duration,
) {
    let mut taken: HashSet<u32> = tally.active.iter().filter_map(|pod| pod.index).collect();
    if wishes.replace_only_failed {
        taken.extend(tally.terminating.iter().filter_map(|pod| pod.index));
    }
    let mut left = missing;
    for index in 0..wishes.completions.unwrap_or(0) {
        if left == 0 {
            break;
        }
        let over = tally.completed.contains(index) || tally.failed_indexes.contains(index);
        if over || taken.contains(&index) {
            continue;
        }
        let mut failures = wishes.backoff_limit_per_index.map(|_| (0, 0));
        if let Some((pod, verdict)) = tally.replace.get(&index) {
            let wait = wait(pod);
            if !wait.is_zero() {
                plan.look_again(wait);
                continue;
            }
            let ignored = i64::from(*verdict == Verdict::Ignore);
            failures = Some((
                pod.index_failures + 1 - ignored,
                pod.index_ignored + ignored,
            ));
        }
        plan.create.push(NewPod {
            index: Some(index),
            failures,
        });
        left -= 1;
    }
}

/// Active pods that are too many: of Indexed Jobs those without a valid index
/// or with another's, then `excess` of the rest, the least useful first.
fn surplus<'a>(wishes: &Wishes<'_>, tally: &Tally<'a>, excess: u64) -> Vec<&'a PodFacts> {
    let mut pods = tally.active.clone();
    // Least useful first: not started, not ready, youngest.
    pods.sort_by_key(|pod| {
        let running = pod.phase == (Phase::Unfinished { running: true });
        (running, pod.ready, Reverse(pod.created), pod.name.clone())
    });
    let mut chosen: Vec<&PodFacts> = Vec::new();
    if wishes.indexed {
        let mut seen = HashSet::new();
        for pod in pods.iter().rev().copied() {
            let valid = pod.index.filter(|index| wishes.has_index(*index));
            if !valid.is_some_and(|index| seen.insert(index)) {
                chosen.push(pod);
            }
        }
    }
    let names: HashSet<&str> = chosen.iter().map(|pod| pod.name.as_str()).collect();
    let others = pods
        .iter()
        .copied()
        .filter(|pod| !names.contains(pod.name.as_str()));
    let more = usize::try_from(excess)
        .unwrap_or(usize::MAX)
        .saturating_sub(chosen.len());
    let more: Vec<&PodFacts> = others.take(more).collect();
    chosen.extend(more);
    chosen
}

/// Writes the last condition once nothing is left to wait for.
fn conclude(plan: &mut Plan, status: &mut JobStatus, now: Timestamp) {
    let Some((kind, reason, message)) = target(status) else {
        return;
    };
    if kind == names::FAILURE_TARGET {
        conditions::set(status, names::FAILED, true, &reason, &message, now);
        plan.tell(Severity::Warning, &reason, &message);
    } else {
        conditions::set(status, names::COMPLETE, true, &reason, &message, now);
        status.completion_time = Some(whole_seconds(now));
        plan.tell(Severity::Normal, "Completed", "Job completed");
    }
    plan.again = None;
}

/// Deletes the Job when its time after its end is over.
fn expire(plan: &mut Plan, status: &JobStatus, wishes: &Wishes<'_>, now: Timestamp) {
    let Some(seconds) = wishes.spec.ttl_seconds_after_finished else {
        return;
    };
    let Some(end) = conditions::finished(status).and_then(|c| c.last_transition_time.as_ref())
    else {
        return;
    };
    let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let left = lifetime.saturating_sub(since(end.0, now));
    if left.is_zero() {
        plan.expire = plan.release.is_empty();
    } else {
        plan.look_again(left);
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
