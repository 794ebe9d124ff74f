//! Decides what a Job needs next. Pure: from the Job, its pods and the time
//! to pods to make, to delete and to release, and the status to store.

mod ending;
mod scale;

use std::time::Duration;

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
use ending::{remaining_time, verdict};
use scale::{removals, scale};

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
        conclude(&mut plan, &mut status, last_success(pods, now), now);
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

/// When the last pod that succeeded had ended. A controller that was not there
/// at that time, because the cluster was down, is late with the conclusion; the
/// Job was complete all the same.
fn last_success(pods: &[&PodFacts], now: Timestamp) -> Timestamp {
    let succeeded = pods.iter().filter(|pod| pod.phase == Phase::Succeeded);
    let last = succeeded.filter_map(|pod| pod.finished).max();
    last.map_or(now, |last| last.min(now))
}

/// Writes the last condition once nothing is left to wait for.
fn conclude(plan: &mut Plan, status: &mut JobStatus, completed: Timestamp, now: Timestamp) {
    let Some((kind, reason, message)) = target(status) else {
        return;
    };
    if kind == names::FAILURE_TARGET {
        conditions::set(status, names::FAILED, true, &reason, &message, now);
        plan.tell(Severity::Warning, &reason, &message);
    } else {
        conditions::set(status, names::COMPLETE, true, &reason, &message, now);
        status.completion_time = Some(whole_seconds(completed));
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
mod tests;
