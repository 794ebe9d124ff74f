//! Table tests of the decisions of [`super`].
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-01-02T{text}Z").parse().unwrap()
}

/// The hourly CronJob `c`, created at 10:00, with the given spec fields and status.
fn cron(spec: Value, status: Value) -> CronJob {
    let mut all = json!({"schedule": "0 * * * *", "jobTemplate": {}});
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": {"name": "c", "uid": "c1", "creationTimestamp": "2026-01-02T10:00:00Z"},
        "spec": all, "status": status,
    }))
    .unwrap()
}

fn job(name: &str) -> JobFacts {
    JobFacts {
        name: name.into(),
        uid: name.into(),
        owner: "c1".into(),
        end: None,
        started: Some(at("10:00:00")),
        completed: None,
        deleting: false,
    }
}

fn ended(name: &str, end: End, started: &str) -> JobFacts {
    JobFacts {
        end: Some(end),
        started: Some(at(started)),
        completed: (end == End::Complete).then(|| at(started)),
        ..job(name)
    }
}

fn with_active(names: &[&str]) -> Value {
    let active: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "uid": name}))
        .collect();
    json!({"active": active})
}

fn decide(cron: &CronJob, jobs: &[JobFacts], now: &str) -> Plan {
    let missing = HashSet::from(["gone".to_owned()]);
    let observed = Observed {
        cron,
        jobs,
        missing: &missing,
        changed: None,
        now: at(now),
    };
    plan(&observed)
}

fn reasons(plan: &Plan) -> Vec<&'static str> {
    plan.notices.iter().map(|notice| notice.reason).collect()
}

fn names(references: &[ObjectReference]) -> Vec<&str> {
    let names = references.iter().map(|reference| reference.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

fn active_names(plan: &Plan) -> Vec<&str> {
    names(plan.status.active.as_deref().unwrap_or_default())
}

#[test]
fn a_job_starts_at_its_scheduled_time() {
    let cron = cron(json!({}), json!({}));
    let before = decide(&cron, &[], "10:59:50");
    assert_eq!(
        (before.start, before.requeue_after),
        (None, Some(Duration::from_secs(10)))
    );
    let plan = decide(&cron, &[], "11:00:00");
    assert_eq!(plan.start.unwrap().time, at("11:00:00"));
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(3600)));
    assert!(plan.notices.is_empty());
}

#[test]
fn schedules_use_their_time_zone() {
    let cron = cron(
        json!({"schedule": "0 3 * * *", "timeZone": "Asia/Kathmandu"}),
        json!({}),
    );
    let plan = decide(&cron, &[], "22:00:00");
    assert_eq!(plan.start.unwrap().time, at("21:15:00"));
}

#[test]
fn concurrency_policies_apply_to_running_jobs() {
    let status = with_active(&["old"]);
    let decide = |policy: &str, status: &Value| {
        let cron = cron(json!({"concurrencyPolicy": policy}), status.clone());
        decide(&cron, &[job("old")], "11:00:00")
    };
    let allow = decide("Allow", &status);
    assert_eq!(allow.start.unwrap().replace, []);
    let forbid = decide("Forbid", &status);
    assert_eq!(
        (reasons(&forbid), &forbid.start),
        (vec!["JobAlreadyActive"], &None)
    );
    assert_eq!(forbid.requeue_after, Some(Duration::from_secs(3600)));
    let replace = decide("Replace", &status);
    assert_eq!(names(&replace.start.unwrap().replace), ["old"]);
    // The Job for this time is already running.
    let name = jobs::name("c", at("11:00:00"));
    for policy in ["Allow", "Forbid", "Replace"] {
        let plan = decide(policy, &with_active(&[&name]));
        assert_eq!(plan.start, None, "{policy}");
        assert_eq!(reasons(&plan), ["UnexpectedJob"], "{policy}");
    }
}

#[test]
fn invalid_and_suspended_schedules_start_no_job() {
    let decide = |spec: Value| decide(&cron(spec, json!({})), &[], "11:30:00");
    let cases = [
        (json!({"suspend": true}), None),
        (
            json!({"timeZone": "Mars/Olympus", "suspend": true}),
            Some((
                "UnknownTimeZone",
                "invalid timeZone: \"Mars/Olympus\": unknown time zone Mars/Olympus",
            )),
        ),
        (
            json!({"schedule": "never"}),
            Some((
                "UnparseableSchedule",
                "unparseable schedule: \"never\" : expected exactly 5 fields, found 1: [never]",
            )),
        ),
        (
            json!({"schedule": "0 0 31 2 *"}),
            Some((
                "InvalidSchedule",
                "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
            )),
        ),
    ];
    for (spec, notices) in cases {
        let plan = decide(spec.clone());
        let found = plan
            .notices
            .first()
            .map(|notice| (notice.reason, notice.message.as_str()));
        assert_eq!(found, notices, "{spec}");
        assert_eq!((plan.start, plan.requeue_after), (None, None), "{spec}");
    }
    let late = decide(json!({"startingDeadlineSeconds": 60}));
    assert_eq!(late.notices[0].reason, "MissSchedule");
    assert_eq!(
        late.notices[0].message,
        "Missed scheduled time to start a job: Fri, 02 Jan 2026 11:00:00 +0000"
    );
    assert_eq!(
        (late.start, late.requeue_after),
        (None, Some(Duration::from_secs(1800)))
    );
}

#[test]
fn more_than_a_hundred_missed_times_are_reported_and_the_latest_starts() {
    let cron = cron(
        json!({"schedule": "* * * * *"}),
        json!({"lastScheduleTime": "2025-01-01T00:00:00Z"}),
    );
    let plan = decide(&cron, &[], "11:30:20");
    assert_eq!(reasons(&plan), ["TooManyMissedTimes"]);
    assert_eq!(plan.start.unwrap().time, at("11:30:00"));
}

#[test]
fn finished_and_deleted_jobs_are_removed_from_the_active_jobs() {
    let mut status = with_active(&["done", "failed", "gone", "runs"]);
    status["lastSuccessfulTime"] = json!("2026-01-02T10:10:00Z");
    let cron = cron(json!({"suspend": true}), status);
    let jobs = [
        ended("done", End::Complete, "10:20:00"),
        ended("earlier", End::Complete, "10:05:00"),
        ended("failed", End::Failed, "10:30:00"),
        job("runs"),
    ];
    let plan = decide(&cron, &jobs, "10:40:00");
    assert_eq!(active_names(&plan), ["runs"]);
    let notices: Vec<&str> = plan
        .notices
        .iter()
        .map(|notice| notice.message.as_str())
        .collect();
    assert_eq!(
        notices,
        [
            "Saw completed job: done, condition: Complete",
            "Saw completed job: failed, condition: Failed",
            "Active job went missing: gone",
        ]
    );
    assert_eq!(plan.status.last_successful_time.unwrap().0, at("10:20:00"));
}

#[test]
fn the_oldest_finished_jobs_beyond_the_limit_are_deleted() {
    let never_started = JobFacts {
        started: None,
        ..ended("e", End::Complete, "10:00:00")
    };
    let deleting = JobFacts {
        deleting: true,
        ..ended("a", End::Complete, "09:00:00")
    };
    let jobs = [
        never_started,
        ended("d", End::Complete, "10:30:00"),
        ended("c", End::Complete, "10:20:00"),
        ended("b", End::Complete, "10:20:00"),
        deleting,
        ended("f", End::Failed, "10:10:00"),
        job("r"),
    ];
    let expired = |spec: Value| {
        let plan = decide(
            &cron(spec, json!({"active": [{"name": "r", "uid": "r"}]})),
            &jobs,
            "10:40:00",
        );
        plan.beyond_history_limit
            .into_iter()
            .map(|job| job.name)
            .collect::<Vec<_>>()
    };
    let limits = |successful, failed| json!({"successfulJobsHistoryLimit": successful, "failedJobsHistoryLimit": failed});
    assert_eq!(expired(limits(3, 1)), ["b"]);
    assert_eq!(expired(limits(1, 0)), ["b", "c", "d", "f"]);
    assert_eq!(expired(limits(0, 0)).len(), 5);
    assert!(expired(json!({})).is_empty());
}

#[test]
fn a_cron_job_in_deletion_only_updates_its_status() {
    let mut cron = cron(json!({}), with_active(&["done"]));
    cron.metadata.deletion_timestamp = Some(Time(at("10:30:00")));
    let plan = decide(
        &cron,
        &[ended("done", End::Complete, "10:20:00")],
        "11:00:00",
    );
    assert_eq!(
        (reasons(&plan), plan.start, plan.requeue_after),
        (vec!["SawCompletedJob"], None, None)
    );
    assert_eq!(plan.status.active, None);
}
