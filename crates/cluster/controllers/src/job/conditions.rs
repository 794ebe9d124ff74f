//! The conditions of a Job's status.

use jiff::Timestamp;
use k8s_openapi::{
    api::batch::v1::{JobCondition, JobStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::names;

/// Truncates a time to whole seconds, the resolution of `Time` in the API.
pub(crate) fn whole_seconds(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// Returns the condition of a type if it is True.
pub(crate) fn find<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == kind && condition.status == "True")
}

/// Returns true if the Job has finished.
pub(crate) fn is_finished(status: &JobStatus) -> bool {
    finished(status).is_some()
}

/// Returns the condition Complete or Failed.
pub(crate) fn finished(status: &JobStatus) -> Option<&JobCondition> {
    find(status, names::COMPLETE).or_else(|| find(status, names::FAILED))
}

/// Sets a condition. Returns true if it changed. A condition with status False is not added.
pub(crate) fn set(
    status: &mut JobStatus,
    kind: &str,
    on: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let value = if on { "True" } else { "False" };
    let new = JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(whole_seconds(now)),
        last_transition_time: Some(whole_seconds(now)),
    };
    match status
        .conditions
        .iter_mut()
        .flatten()
        .find(|condition| condition.type_ == kind)
    {
        Some(old) if old.status == value => false,
        Some(old) => {
            *old = new;
            true
        }
        None if on => {
            status.conditions.get_or_insert_default().push(new);
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_condition_changes_once_and_is_not_added_as_false() {
        let now: Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        let mut status = JobStatus::default();
        assert!(!set(
            &mut status,
            names::SUSPENDED,
            false,
            "JobResumed",
            "",
            now
        ));
        assert_eq!(status.conditions, None);
        assert!(set(
            &mut status,
            names::SUSPENDED,
            true,
            "JobSuspended",
            "",
            now
        ));
        assert!(!set(
            &mut status,
            names::SUSPENDED,
            true,
            "JobSuspended",
            "",
            now
        ));
        assert!(find(&status, names::SUSPENDED).is_some());
        assert!(set(
            &mut status,
            names::SUSPENDED,
            false,
            "JobResumed",
            "",
            now
        ));
        assert!(find(&status, names::SUSPENDED).is_none());
        let condition = &status.conditions.as_ref().unwrap()[0];
        assert_eq!(condition.last_transition_time, Some(whole_seconds(now)));
        assert_eq!(whole_seconds(now).0.subsec_nanosecond(), 0);
        assert!(!is_finished(&status));
    }
}
