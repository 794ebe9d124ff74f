//! Tests of grouping Jobs and pods into runs.
#![allow(clippy::unwrap_used)]

use longshore_diagnosis::evidence::JobEvidence;
use longshore_model::facts::PodFacts;
use serde_json::{Value, json};

use super::{summary::summaries, *};

fn job(run: &str, role: &str, created: &str, more: Value) -> JobEvidence {
    let mut value = json!({
        "metadata": {
            "name": format!("{run}-{role}"), "namespace": "team", "creationTimestamp": created,
            "labels": {"longshore.dev/run": run, "longshore.dev/role": role},
            "annotations": {
                "longshore.dev/name": "My Model",
                "longshore.dev/command": "[\"python\",\"train.py\"]",
                "longshore.dev/bundle-sha256": "abc",
                "longshore.dev/roles": "[{\"name\":\"ps\",\"count\":1,\"service\":true},{\"name\":\"worker\",\"count\":2,\"service\":false}]",
            },
        },
        "spec": {"backoffLimit": 0},
    });
    for (key, part) in more.as_object().unwrap() {
        for (name, field) in part.as_object().unwrap() {
            value[key][name] = field.clone();
        }
    }
    serde_json::from_value(value).unwrap()
}

fn pod(run: &str, role: &str, index: u32, code: Option<i32>) -> PodFacts {
    let state = code.map_or_else(
        || json!({"running": {}}),
        |code| json!({"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:09Z"}}),
    );
    let phase = match code {
        None => "Running",
        Some(0) => "Succeeded",
        Some(_) => "Failed",
    };
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "team", "uid": format!("{run}-{role}-{index}"),
            "labels": {
                "longshore.dev/run": run, "longshore.dev/role": role,
                "batch.kubernetes.io/job-completion-index": index.to_string(),
            },
        },
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    }))
    .unwrap()
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

fn pair(run: &str) -> [JobEvidence; 2] {
    [
        job(run, "ps", EARLY, json!({})),
        job(run, "worker", EARLY, json!({})),
    ]
}

#[test]
fn a_run_consists_of_its_jobs_and_pods() {
    let jobs = [
        pair("a-1").as_slice(),
        &[job("b-2", "worker", LATE, json!({}))],
    ]
    .concat();
    let pods = [
        pod("a-1", "worker", 0, Some(0)),
        pod("a-1", "worker", 1, None),
        pod("gone", "x", 0, None),
    ];
    let found = summaries(&jobs, &pods);
    let names: Vec<_> = found
        .iter()
        .map(|summary| summary.run.name.as_str())
        .collect();
    assert_eq!(names, ["b-2", "a-1"], "newest first");
    let run = &found[1];
    assert_eq!(run.state, RunState::Running);
    assert_eq!(run.succeeded, (1, 3));
    assert_eq!(run.full_name, "My Model");
    assert_eq!(run.command, ["python", "train.py"]);
    assert_eq!(run.bundle.as_deref(), Some("abc"));
    assert_eq!((run.exit_code, run.finished), (None, None));
    assert!(run.run.roles[0].service);
    assert_eq!(found[0].state, RunState::Pending);
}

#[test]
fn ends_have_their_exit_codes() {
    let state = |pods: &[PodFacts]| {
        let found = summaries(&pair("a-1"), pods);
        (found[0].state, found[0].exit_code)
    };
    let ps = pod("a-1", "ps", 0, None);
    let done = [
        pod("a-1", "worker", 0, Some(0)),
        pod("a-1", "worker", 1, Some(0)),
        ps.clone(),
    ];
    assert_eq!(state(&done), (RunState::Succeeded, Some(0)));
    let failed = [
        pod("a-1", "worker", 0, Some(0)),
        pod("a-1", "worker", 1, Some(7)),
        ps,
    ];
    assert_eq!(state(&failed), (RunState::Failed, Some(7)));
    assert_eq!(
        summaries(&pair("a-1"), &failed)[0]
            .finished
            .unwrap()
            .to_string(),
        "2026-01-01T00:00:09Z"
    );
}

#[test]
fn without_pods_the_jobs_decide() {
    let condition = |kind: &str| {
        json!({"status": {"conditions": [
            {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": LATE},
        ]}})
    };
    let found = summaries(&[job("a-1", "worker", EARLY, condition("Failed"))], &[]);
    assert_eq!(
        (found[0].state, found[0].exit_code),
        (RunState::Failed, Some(1))
    );
    assert_eq!(found[0].finished.unwrap().to_string(), LATE);
    let found = summaries(&[job("a-1", "worker", EARLY, condition("Complete"))], &[]);
    assert_eq!(
        (found[0].state, found[0].succeeded),
        (RunState::Succeeded, (2, 3))
    );
}

#[test]
fn cancelled_runs_have_the_state_cancelled() {
    let mut jobs = pair("a-1");
    for job in &mut jobs {
        job.metadata
            .annotations
            .insert(names::CANCELLED.into(), LATE.into());
    }
    let found = summaries(&jobs, &[]);
    assert_eq!(
        (found[0].state, found[0].exit_code),
        (RunState::Cancelled, Some(130))
    );
    assert!(found[0].state.is_over());
}

#[test]
fn jobs_that_are_not_runs_are_omitted() {
    assert!(summaries(&[JobEvidence::default()], &[PodFacts::default()]).is_empty());
}

#[test]
fn a_run_ends_with_its_tasks_not_with_the_restart_of_its_cluster() {
    let late = json!({
        "spec": {"completions": 2},
        "status": {"completionTime": LATE, "conditions": [
            {"type": "Complete", "status": "True", "lastTransitionTime": LATE},
        ]},
    });
    let jobs = [job("a-1", "worker", EARLY, late)];
    let pods = [
        pod("a-1", "worker", 0, Some(0)),
        pod("a-1", "worker", 1, Some(0)),
    ];
    let finished = |pods: &[PodFacts]| summaries(&jobs, pods)[0].finished.unwrap().to_string();
    assert_eq!(finished(&pods), "2026-01-01T00:00:09Z");
    // A deleted pod may have ended last.
    assert_eq!(finished(&pods[..1]), LATE);
}

#[test]
fn a_run_whose_cluster_was_stopped_has_this_cause() {
    let cause = "the cluster was stopped by `longshore down`";
    let why = json!({"kind": "cluster-stopped", "cause": cause, "remedy": "run it again"});
    let mut jobs = pair("a-1");
    for job in &mut jobs {
        job.spec.suspend = true;
        job.metadata.annotations.extend([
            (names::STOPPED.to_owned(), format!("{LATE}: {cause}")),
            (names::WHY.to_owned(), why.to_string()),
        ]);
    }
    // The end of the pods does not affect the outcome of the run.
    for pods in [&[][..], &[pod("a-1", "worker", 0, Some(143))]] {
        let found = &summaries(&jobs, pods)[0];
        assert_eq!((found.state, found.exit_code), (RunState::Failed, Some(3)));
        assert_eq!(found.outcome.as_ref().unwrap().reason, cause);
    }
    let found = &summaries(&jobs, &[])[0];
    assert_eq!(found.finished.unwrap().to_string(), LATE);
}

#[test]
fn a_run_without_pods_keeps_its_exit_code() {
    let noted = |end: &str| {
        let mut jobs = pair("a-1");
        for job in &mut jobs {
            job.spec.suspend = true;
            let reason = "worker/0: its command ended with exit code 76";
            job.metadata.annotations.extend([
                (names::STOPPED.to_owned(), format!("{LATE}: {reason}")),
                (names::ENDED.to_owned(), end.to_owned()),
            ]);
        }
        let found = summaries(&jobs, &[]).remove(0);
        (found.state, found.exit_code)
    };
    // An invalid record does not change the end to a success.
    for (end, code) in [
        (r#"{"ending": "failed", "exitCode": 76}"#, 76),
        (r#"{"ending": "failed", "exitCode": 0}"#, 1),
        (r#"{"ending": "succeded", "exitCode": 0}"#, 4),
        (r#"{"ending": "failed", "exitCode": 99999999999}"#, 4),
        ("{", 4),
    ] {
        assert_eq!(noted(end), (RunState::Failed, Some(code)), "{end}");
    }
    let succeeded = noted(r#"{"ending": "succeeded", "exitCode": 0}"#);
    assert_eq!(succeeded, (RunState::Succeeded, Some(0)));
}

#[test]
fn runs_of_one_second_are_listed_in_the_order_of_their_submission() {
    let submitted = |run: &str, time: &str| {
        let mut job = job(run, "worker", EARLY, json!({}));
        let annotations = &mut job.metadata.annotations;
        annotations.insert(names::SUBMITTED.into(), time.into());
        job
    };
    let jobs = [
        submitted("b-1", "2026-01-01T00:00:00.000002Z"),
        submitted("a-1", "2026-01-01T00:00:00.000001Z"),
        submitted("c-1", "2026-01-01T00:00:00.000003Z"),
    ];
    let found = summaries(&jobs, &[]);
    let names: Vec<_> = found.iter().map(|run| run.run.name.as_str()).collect();
    assert_eq!(names, ["c-1", "b-1", "a-1"]);
}

#[test]
fn a_cancelled_run_ended_when_it_was_cancelled() {
    let mut jobs = pair("a-1");
    for job in &mut jobs {
        let annotations = &mut job.metadata.annotations;
        annotations.insert(names::CANCELLED.into(), LATE.into());
    }
    assert_eq!(summaries(&jobs, &[])[0].finished.unwrap().to_string(), LATE);
}

#[test]
fn only_the_users_labels_are_shown() {
    let mut job = job("a-1", "worker", EARLY, json!({}));
    for key in [
        names::MANAGED_BY,
        names::QUEUE,
        "batch.kubernetes.io/job-name",
        "job-name",
        "team",
        "example.com/sweep",
    ] {
        job.metadata.labels.insert(key.into(), "x".into());
    }
    let found = summaries(&[job], &[]);
    let labels: Vec<_> = found[0].labels.keys().map(String::as_str).collect();
    assert_eq!(labels, ["example.com/sweep", "team"]);
}
