//! Decides whether a Job ends now, how, and why.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;

use super::{EffectiveSpec, IndexSet, Tally, names, since};

pub(super) type Ending = (&'static str, &'static str, String);

/// Returns the condition type, reason and message if the Job ends now.
pub(super) fn verdict(
    effective: &EffectiveSpec<'_>,
    status: &JobStatus,
    tally: &Tally<'_>,
    now: Timestamp,
) -> Option<Ending> {
    let fail = |reason, message: &str| Some((names::FAILURE_TARGET, reason, message.to_owned()));
    if let Some(message) = &tally.fail_job {
        return fail("PodFailurePolicy", message);
    }
    if tally.failed > effective.backoff_limit || restarts_exhausted(effective, tally) {
        let message = "Job has reached the specified backoff limit";
        return fail("BackoffLimitExceeded", message);
    }
    if remaining_time(effective, status, now) == Some(Duration::ZERO) {
        let message = "Job was active longer than specified deadline";
        return fail("DeadlineExceeded", message);
    }
    if effective.backoff_limit_per_index.is_some() {
        let failed = tally.failed_indexes.len();
        let max_failed = effective
            .spec
            .max_failed_indexes
            .and_then(|max_failed| u64::try_from(max_failed).ok());
        if max_failed.is_some_and(|max_failed| failed > max_failed) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return fail("MaxFailedIndexesExceeded", message);
        }
        let all = u64::from(effective.completions.unwrap_or(0));
        if failed > 0 && failed + tally.completed.len() >= all {
            return fail("FailedIndexes", "Job has failed indexes");
        }
    }
    let met = |reason, message: String| Some((names::SUCCESS_CRITERIA_MET, reason, message));
    if let Some(rule) = success_rule(effective, &tally.completed) {
        return met("SuccessPolicy", format!("Matched rules at index {rule}"));
    }
    let complete = tally.active.is_empty()
        && match effective.completions {
            Some(completions) => tally.succeeded >= u64::from(completions),
            None => tally.succeeded > 0,
        };
    if complete && !effective.suspended {
        return met(
            "CompletionsReached",
            "Reached expected number of succeeded pods".to_owned(),
        );
    }
    None
}

/// With restartPolicy OnFailure, container restarts count as failures.
fn restarts_exhausted(effective: &EffectiveSpec<'_>, tally: &Tally<'_>) -> bool {
    let policy = effective
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
    restarts > 0 && restarts >= effective.backoff_limit
}

/// Returns the first success policy rule that is met.
fn success_rule(effective: &EffectiveSpec<'_>, completed: &IndexSet) -> Option<usize> {
    let rules = &effective
        .spec
        .success_policy
        .as_ref()
        .filter(|_| effective.indexed)?
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

/// Returns the remaining time of activeDeadlineSeconds.
pub(super) fn remaining_time(
    effective: &EffectiveSpec<'_>,
    status: &JobStatus,
    now: Timestamp,
) -> Option<Duration> {
    let limit = effective
        .spec
        .active_deadline_seconds
        .filter(|_| !effective.suspended)?;
    let limit = Duration::from_secs(u64::try_from(limit).unwrap_or(0));
    Some(limit.saturating_sub(since(status.start_time.as_ref()?.0, now)))
}
