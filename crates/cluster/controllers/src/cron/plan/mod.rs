//! Decides what to do about a CronJob. Pure.

use std::{collections::HashSet, time::Duration};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use longshore_model::schedule::{Schedule, time_zone};

use super::{
    due::{Due, Past, due},
    facts::{End, JobFacts},
    jobs,
};
use crate::events::Severity;

/// The input of a decision.
pub(crate) struct Observed<'a> {
    /// The CronJob.
    pub(crate) cron: &'a CronJob,
    /// The Jobs of the CronJob.
    pub(crate) jobs: &'a [JobFacts],
    /// The UIDs of active Jobs that no longer exist.
    pub(crate) missing: &'a HashSet<String>,
    /// The time at which the controller observed a change of the schedule.
    pub(crate) changed: Option<Timestamp>,
    /// The current time.
    pub(crate) now: Timestamp,
}

/// The actions to take.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    /// The new status, without the Job to start.
    pub(crate) status: CronJobStatus,
    /// The events to record.
    pub(crate) notices: Vec<Notice>,
    /// The finished Jobs beyond the history limits.
    pub(crate) beyond_history_limit: Vec<JobFacts>,
    /// The Job to start.
    pub(crate) start: Option<Start>,
    /// The time until the next check.
    pub(crate) requeue_after: Option<Duration>,
}

/// A Job to start.
#[derive(Debug, PartialEq)]
pub(crate) struct Start {
    /// The scheduled time.
    pub(crate) time: Timestamp,
    /// The schedule's time zone.
    pub(crate) zone: TimeZone,
    /// The active Jobs that it replaces.
    pub(crate) replace: Vec<ObjectReference>,
}

/// An event to record. As long as its cause persists, an event is recorded once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Notice {
    /// Normal or Warning.
    pub(crate) severity: Severity,
    /// The machine-readable reason.
    pub(crate) reason: &'static str,
    /// The human-readable message.
    pub(crate) message: String,
    /// The scheduled time that the event is about. An event for another time is recorded again.
    pub(crate) about: Option<Timestamp>,
}

impl Notice {
    fn normal(reason: &'static str, message: String) -> Self {
        Self {
            severity: Severity::Normal,
            reason,
            message,
            about: None,
        }
    }

    fn warning(reason: &'static str, message: String) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(reason, message)
        }
    }

    fn about(self, time: Timestamp) -> Self {
        Self {
            about: Some(time),
            ..self
        }
    }
}

/// Decides what to do.
pub(crate) fn plan(observed: &Observed<'_>) -> Plan {
    let spec = &observed.cron.spec;
    let mut plan = Plan {
        status: observed.cron.status.clone().unwrap_or_default(),
        notices: Vec::new(),
        beyond_history_limit: beyond_history_limit(spec, observed.jobs),
        start: None,
        requeue_after: None,
    };
    update_status(observed, &mut plan);
    if observed.cron.metadata.deletion_timestamp.is_none() {
        schedule(observed, spec, &mut plan);
    }
    plan
}

/// Returns true if a running Job is missing from the active Jobs.
pub(crate) fn is_unexpected(status: Option<&CronJobStatus>, job: &JobFacts) -> bool {
    let mut active = status.into_iter().flat_map(active);
    job.is_running() && !active.any(|reference| is(reference, job))
}

pub(crate) fn active(status: &CronJobStatus) -> impl Iterator<Item = &ObjectReference> {
    status.active.iter().flatten()
}

fn is(reference: &ObjectReference, job: &JobFacts) -> bool {
    reference.uid.as_deref() == Some(&job.uid)
}

/// Removes a Job from the active Jobs.
pub(crate) fn remove(status: &mut CronJobStatus, uid: &str) -> bool {
    let before = active(status).count();
    let active = status.active.get_or_insert_default();
    active.retain(|reference| reference.uid.as_deref() != Some(uid));
    let after = active.len();
    if after == 0 {
        status.active = None;
    }
    after < before
}

/// Updates the status from the existing Jobs.
fn update_status(observed: &Observed<'_>, plan: &mut Plan) {
    for job in observed.jobs {
        if is_unexpected(Some(&plan.status), job) {
            let message = format!(
                "Saw a job that the controller did not create or forgot: {}",
                job.name
            );
            plan.notices.push(Notice::warning("UnexpectedJob", message));
        }
        let Some(end) = job.end else { continue };
        if remove(&mut plan.status, &job.uid) {
            let (name, condition) = (&job.name, end.condition());
            let message = format!("Saw completed job: {name}, condition: {condition}");
            plan.notices
                .push(Notice::normal("SawCompletedJob", message));
        }
        let last = plan.status.last_successful_time.as_ref().map(|time| time.0);
        if end == End::Complete && job.completed > last {
            plan.status.last_successful_time = job.completed.map(Time);
        }
    }
    for reference in observed.cron.status.iter().flat_map(active) {
        let uid = reference.uid.as_deref().unwrap_or_default();
        if observed.missing.contains(uid) && remove(&mut plan.status, uid) {
            let name = reference.name.as_deref().unwrap_or_default();
            let message = format!("Active job went missing: {name}");
            plan.notices.push(Notice::normal("MissingJob", message));
        }
    }
}

/// Returns the oldest finished Jobs beyond the history limits.
fn beyond_history_limit(spec: &CronJobSpec, jobs: &[JobFacts]) -> Vec<JobFacts> {
    let oldest = |end: End, limit: Option<i32>| {
        let mut ended: Vec<&JobFacts> = jobs
            .iter()
            .filter(|job| job.end == Some(end) && !job.deleting)
            .collect();
        // Jobs that never started come last.
        ended.sort_by_key(|job| (job.started.is_none(), job.started, &job.name));
        let keep = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
        ended.truncate(ended.len().saturating_sub(keep));
        ended
    };
    let complete = oldest(End::Complete, spec.successful_jobs_history_limit);
    let failed = oldest(End::Failed, spec.failed_jobs_history_limit);
    complete.into_iter().chain(failed).cloned().collect()
}

/// Decides whether a Job is due.
fn schedule(observed: &Observed<'_>, spec: &CronJobSpec, plan: &mut Plan) {
    let zone = match spec.time_zone.as_deref() {
        None => TimeZone::UTC,
        Some(name) => match time_zone(name) {
            Some(zone) => zone,
            None => {
                let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
                plan.notices
                    .push(Notice::warning("UnknownTimeZone", message));
                return;
            }
        },
    };
    if spec.suspend == Some(true) {
        return;
    }
    let text = &spec.schedule;
    let schedule: Schedule = match text.parse() {
        Ok(schedule) => schedule,
        Err(error) => {
            let message = format!("unparseable schedule: {text:?} : {error}");
            plan.notices
                .push(Notice::warning("UnparseableSchedule", message));
            return;
        }
    };
    let now = observed.now;
    let meta = &observed.cron.metadata;
    let last = plan.status.last_schedule_time.as_ref();
    let past = Past {
        anchor: last
            .or(meta.creation_timestamp.as_ref())
            .map_or(now, |time| time.0),
        changed: observed.changed,
        deadline: spec
            .starting_deadline_seconds
            .map(SignedDuration::from_secs),
    };
    let (due, next) = due(&schedule, zone.clone(), &past, now);
    plan.requeue_after = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    match due {
        Due::Nothing => {}
        Due::Never => {
            let message = format!(
                "invalid schedule: {text} : time difference between two schedules is less than 1 second"
            );
            plan.notices
                .push(Notice::warning("InvalidSchedule", message));
        }
        Due::TooLate(time) => {
            let when = time.strftime("%a, %d %b %Y %H:%M:%S +0000");
            let message = format!("Missed scheduled time to start a job: {when}");
            plan.notices.push(Notice::warning("MissSchedule", message));
        }
        Due::At { time, too_many } => {
            if too_many {
                let message = "too many missed start times. Set or decrease \
                               .spec.startingDeadlineSeconds or check clock skew";
                let notice = Notice::warning("TooManyMissedTimes", message.to_owned());
                plan.notices.push(notice.about(time));
            }
            start(
                spec,
                meta.name.as_deref().unwrap_or_default(),
                time,
                zone,
                plan,
            );
        }
    }
}

/// Starts the Job for a scheduled time, if the concurrency policy allows it.
fn start(spec: &CronJobSpec, cron: &str, time: Timestamp, zone: TimeZone, plan: &mut Plan) {
    let name = jobs::name(cron, time);
    let is_active = |reference: &ObjectReference| reference.name.as_ref() == Some(&name);
    if active(&plan.status).any(is_active) {
        return;
    }
    let policy = spec.concurrency_policy.as_deref();
    if policy == Some("Forbid") && active(&plan.status).next().is_some() {
        let message =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        let notice = Notice::normal("JobAlreadyActive", message.to_owned());
        plan.notices.push(notice.about(time));
        return;
    }
    let replace = match policy {
        Some("Replace") => active(&plan.status).cloned().collect(),
        _ => Vec::new(),
    };
    plan.start = Some(Start {
        time,
        zone,
        replace,
    });
}

#[cfg(test)]
mod tests;
