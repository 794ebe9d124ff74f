//! Decides what to do about a Job. Pure: from the Job, its pods and the time, it
//! computes the pods to create, to delete and to release, and the status to store.

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
    spec::EffectiveSpec,
    tally::{self, Tally},
};
use crate::events::Severity;
use ending::{remaining_time, verdict};
use scale::{removals, scale};

/// The input of a decision.
pub(crate) struct Observed<'a> {
    /// The latest observed Job.
    pub(crate) job: &'a Job,
    /// The pods that the Job controls.
    pub(crate) pods: &'a [&'a PodFacts],
    /// The consecutive failures before this decision.
    pub(crate) failures: Failures,
    /// The limits of the backoff.
    pub(crate) limits: BackoffLimits,
    /// The current time.
    pub(crate) now: Timestamp,
}

/// A pod to delete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Removal {
    /// The pod.
    pub(crate) pod: PodFacts,
    /// True to remove its finalizer first, so that it does not count as failed.
    pub(crate) uncounted: bool,
}

/// An event to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Normal or Warning.
    pub(crate) severity: Severity,
    /// The machine-readable reason.
    pub(crate) reason: String,
    /// The human-readable message.
    pub(crate) message: String,
}

/// The actions to take, in this order: create and delete pods, store the status,
/// record events, remove finalizers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    /// The pods to create.
    pub(crate) create: Vec<NewPod>,
    /// The pods to delete.
    pub(crate) delete: Vec<Removal>,
    /// The status to store.
    pub(crate) status: JobStatus,
    /// The events to record after the status is stored.
    pub(crate) notices: Vec<Notice>,
    /// The pods whose finalizer can be removed after the status is stored.
    pub(crate) release: Vec<PodFacts>,
    /// The consecutive failures after the status is stored.
    pub(crate) failures: Failures,
    /// The delay before the next reconciliation.
    pub(crate) requeue_after: Option<Duration>,
    /// True if the Job's TTL has expired, so that it must be deleted.
    pub(crate) expire: bool,
}

impl Plan {
    fn requeue(&mut self, after: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(after, |sooner| sooner.min(after)));
    }

    fn record_event(&mut self, severity: Severity, reason: &str, message: &str) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.notices.push(Notice {
            severity,
            reason,
            message,
        });
    }
}

/// Decides what to do; `None` for a Job without a spec.
pub(crate) fn plan(observed: &Observed<'_>) -> Option<Plan> {
    let &Observed {
        job,
        pods,
        failures,
        limits,
        now,
    } = observed;
    let effective = EffectiveSpec::of(job)?;
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
        expire(&mut plan, &status, &effective, now);
        plan.status = status;
        return Some(plan);
    }
    let deleting = job.metadata.deletion_timestamp.is_some();
    if status.start_time.is_none() && !effective.suspended {
        status.start_time = Some(whole_seconds(now));
    }
    tally::settle(&mut status, &effective, pods);
    let tally = tally::tally(&mut status, &effective, pods, failures, now);
    plan.failures = tally.failures;

    if target(&status).is_none() {
        if let Some((kind, reason, message)) = verdict(&effective, &status, &tally, now) {
            conditions::set(&mut status, kind, true, reason, &message, now);
        }
        watch_deadline(&mut plan, &effective, &status, now);
    }
    let ending = target(&status).is_some();
    if ending {
        plan.delete = removals(&tally.active, false);
    } else if !deleting {
        suspend(&mut plan, &mut status, &effective, now);
        if effective.suspended {
            plan.delete = removals(&tally.active, true);
        } else {
            scale(&mut plan, &effective, &tally, limits, now);
        }
    }
    let mut release = tally.release.clone();
    if ending || deleting {
        release.extend(tally.replace.values().map(|(pod, _)| *pod));
    }
    plan.release = release.into_iter().cloned().collect();

    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    // As in Kubernetes, zeros of these two counts are omitted.
    status.active = Some(number(tally.active.len())).filter(|count| *count > 0);
    status.ready = Some(number(tally.ready));
    status.terminating = Some(number(tally.terminating.len()));
    if effective.indexed {
        let succeeded = i32::try_from(tally.completed.len()).unwrap_or(i32::MAX);
        status.succeeded = Some(succeeded).filter(|count| *count > 0);
        status.completed_indexes = non_empty_text(&tally.completed);
        if effective.backoff_limit_per_index.is_some() {
            status.failed_indexes = Some(tally.failed_indexes.to_string());
        }
    }
    let no_pods_left = tally.active.is_empty() && tally.terminating.is_empty();
    if no_pods_left && plan.release.is_empty() && tally.replace.is_empty() {
        conclude(&mut plan, &mut status, last_success(pods, now), now);
    }
    plan.status = status;
    Some(plan)
}

fn non_empty_text(set: &IndexSet) -> Option<String> {
    (set.len() > 0).then(|| set.to_string())
}

/// Returns the type, reason and message of the condition that announces how the Job
/// will end.
fn target(status: &JobStatus) -> Option<(&'static str, String, String)> {
    [names::FAILURE_TARGET, names::SUCCESS_CRITERIA_MET]
        .into_iter()
        .find_map(|kind| {
            let condition = conditions::find(status, kind)?;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Some((kind, text(&condition.reason), text(&condition.message)))
        })
}

/// Returns true if the status announces how the Job will end.
pub(crate) fn is_decided(status: Option<&JobStatus>) -> bool {
    status.is_some_and(|status| target(status).is_some())
}

fn since(start: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(start)).unwrap_or(Duration::ZERO)
}

fn watch_deadline(
    plan: &mut Plan,
    effective: &EffectiveSpec<'_>,
    status: &JobStatus,
    now: Timestamp,
) {
    if let Some(left) = remaining_time(effective, status, now).filter(|left| !left.is_zero()) {
        plan.requeue(left);
    }
}

/// Sets the condition Suspended. A suspended Job has no start time.
fn suspend(plan: &mut Plan, status: &mut JobStatus, effective: &EffectiveSpec<'_>, now: Timestamp) {
    if effective.suspended {
        let message = "Job suspended";
        if conditions::set(status, names::SUSPENDED, true, "JobSuspended", message, now) {
            plan.record_event(Severity::Normal, "Suspended", message);
            status.start_time = None;
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
        plan.record_event(Severity::Normal, "Resumed", "Job resumed");
    }
}

/// Returns the time at which the last successful pod ended. A controller that was down at that time
/// stores the condition later, with this completion time.
fn last_success(pods: &[&PodFacts], now: Timestamp) -> Timestamp {
    let succeeded = pods.iter().filter(|pod| pod.phase == Phase::Succeeded);
    let last = succeeded.filter_map(|pod| pod.finished).max();
    last.map_or(now, |last| last.min(now))
}

/// Sets the final condition when there is nothing left to wait for.
fn conclude(plan: &mut Plan, status: &mut JobStatus, completed: Timestamp, now: Timestamp) {
    let Some((kind, reason, message)) = target(status) else {
        return;
    };
    if kind == names::FAILURE_TARGET {
        conditions::set(status, names::FAILED, true, &reason, &message, now);
        plan.record_event(Severity::Warning, &reason, &message);
    } else {
        conditions::set(status, names::COMPLETE, true, &reason, &message, now);
        status.completion_time = Some(whole_seconds(completed));
        plan.record_event(Severity::Normal, "Completed", "Job completed");
    }
    plan.requeue_after = None;
}

/// Deletes the Job if its TTL has expired.
fn expire(plan: &mut Plan, status: &JobStatus, effective: &EffectiveSpec<'_>, now: Timestamp) {
    let Some(seconds) = effective.spec.ttl_seconds_after_finished else {
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
        plan.requeue(left);
    }
}

#[cfg(test)]
mod tests;
