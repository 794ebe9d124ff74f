//! Schedules, which create runs repeatedly.

use jiff::{Timestamp, tz::TimeZone};
use longshore_diagnosis::{
    evidence::CronJobEvidence,
    names::{self, RunName},
};
use longshore_model::schedule::{self, Schedule};
use serde::Serialize;

use super::{Run, RunState, RunSummary, summary};
use crate::owner::Owner;

/// The state of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleSummary {
    /// The schedule in cron syntax.
    pub cron: String,
    /// The time zone of `cron`. `None` for the cluster's time zone, usually UTC.
    pub time_zone: Option<String>,
    /// The time when the schedule last created a run.
    pub last: Option<Timestamp>,
    /// The time when the schedule creates the next run. `None` while it is paused. Without a time
    /// zone, the cluster's time zone is assumed to be UTC.
    pub next: Option<Timestamp>,
    /// The number of active Jobs.
    pub active: usize,
}

/// The schedules among the CronJobs of runs.
pub(super) fn summaries(found: &[CronJobEvidence], now: Timestamp) -> Vec<RunSummary> {
    let mut all: Vec<RunSummary> = Vec::new();
    for one in found {
        let Some(run) = one.metadata.labels.get(names::RUN) else {
            continue;
        };
        let known = all.iter_mut().find(|known| {
            known.run.name.as_str() == run && known.run.namespace == one.metadata.namespace()
        });
        if let Some(known) = known.and_then(|known| known.schedule.as_mut()) {
            // Another role has its own CronJob.
            known.active += one.status.active.len();
            known.last = known.last.max(one.status.last_schedule_time);
            continue;
        }
        all.extend(of(one, run, now));
    }
    all
}

fn of(one: &CronJobEvidence, run: &str, now: Timestamp) -> Option<RunSummary> {
    let meta = &one.metadata;
    let annotation = |key: &str| meta.annotations.get(key).cloned();
    let zone = one.spec.time_zone.as_deref().map(schedule::time_zone);
    let next = || {
        let schedule: Schedule = one.spec.schedule.parse().ok()?;
        let anchor = one.status.last_schedule_time.or(meta.creation_timestamp)?;
        schedule
            .times(anchor, zone.flatten().unwrap_or(TimeZone::UTC))
            .after(now)
    };
    let next = (!one.spec.suspend).then(next).flatten();
    Some(RunSummary {
        run: Run {
            name: RunName::existing(run).ok()?,
            namespace: meta.namespace().to_owned(),
            roles: summary::declared(meta).unwrap_or_default(),
            schedule: None,
        },
        full_name: annotation(names::FULL_NAME).unwrap_or_else(|| run.to_owned()),
        state: match one.spec.suspend {
            true => RunState::Paused,
            false => RunState::Scheduled,
        },
        created: meta.creation_timestamp,
        submitted: super::submitted(meta),
        owner: Owner::of_object(meta),
        finished: None,
        command: summary::command(meta),
        bundle: annotation(names::BUNDLE),
        labels: super::user_labels(meta),
        tags: super::tags::of(meta),
        note: annotation(names::NOTE),
        exit_code: None,
        outcome: None,
        succeeded: (0, 0),
        restarts: 0,
        webhook_problem: None,
        sweep: None,
        schedule: Some(ScheduleSummary {
            cron: one.spec.schedule.clone(),
            time_zone: one.spec.time_zone.clone(),
            last: one.status.last_schedule_time,
            next,
            active: one.status.active.len(),
        }),
    })
}
