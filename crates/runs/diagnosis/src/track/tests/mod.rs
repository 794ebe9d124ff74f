//! Tests of the state machine: sequences of inputs and the resulting steps.
#![allow(clippy::unwrap_used)]

mod cancellation;
mod failure;
mod independent;
mod retries;
mod sidecars;
mod span;
mod success;
mod waiting;

use serde_json::{Value, json};

use super::*;
use crate::outcome::Ending;

const BEGIN: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(BEGIN + seconds).unwrap()
}

fn role(name: &str, count: u32) -> RunRole {
    RunRole {
        name: name.into(),
        count,
        service: name == "ps",
    }
}

fn track(roles: &[RunRole]) -> Track {
    let mut track = Track::new(roles.to_vec(), Duration::from_secs(600), at(0));
    for role in roles {
        track.see(job(&role.name, json!({})), at(0));
    }
    track.see(Seen::Synced, at(0));
    track
}

fn pod(role: &str, index: u32, status: Value) -> Seen {
    let value = json!({
        "metadata": {
            "name": format!("run-{role}-{index}-x"),
            "uid": format!("{role}-{index}"),
            "labels": {"longshore.dev/role": role},
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
        },
        "spec": {"containers": [{"name": "main", "image": "i", "command": ["longshore", "bootstrap", "exec", "--", "train", "--fast"]}]},
        "status": status,
    });
    Seen::Pod(Box::new(serde_json::from_value(value).unwrap()))
}

fn job(role: &str, status: Value) -> Seen {
    changed_job(role, status, json!({}), 0)
}

fn changed_job(role: &str, status: Value, annotations: Value, backoff_limit: u32) -> Seen {
    let value = json!({
        "metadata": {"name": format!("run-{role}"), "labels": {"longshore.dev/role": role}, "annotations": annotations},
        "spec": {"backoffLimit": backoff_limit},
        "status": status,
    });
    Seen::Job(Box::new(serde_json::from_value(value).unwrap()))
}

/// A further pod of a task, which replaces earlier ones.
fn attempt(number: i64, deleted: bool, index: u32, status: Value) -> Seen {
    let Seen::Pod(mut seen) = pod("main", index, status) else {
        panic!()
    };
    // The newest pod has the lowest uid: the order of uids does not matter.
    seen.metadata.uid = format!("{}-{index}", 9 - number);
    seen.metadata.creation_timestamp = Some(at(number));
    seen.metadata.deletion_timestamp = deleted.then(|| at(number));
    Seen::Pod(seen)
}

fn condition(kind: &str, reason: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": "True", "reason": reason, "message": ""}]})
}

fn main(state: Value, phase: &str) -> Value {
    json!({"phase": phase, "containerStatuses": [{"name": "main", "state": state}]})
}

fn running() -> Value {
    main(
        json!({"running": {"startedAt": at(1).to_string()}}),
        "Running",
    )
}

fn ended(code: i32, finished: i64) -> Value {
    let state = json!({"terminated": {"exitCode": code, "finishedAt": at(finished).to_string()}});
    main(state, if code == 0 { "Succeeded" } else { "Failed" })
}

fn going_on(track: &Track) -> Vec<&str> {
    let jobs = track.going_on().into_iter();
    jobs.map(|job| job.metadata.name.as_str()).collect()
}

fn outcome(steps: &[Step]) -> Option<(&Outcome, Vec<&str>)> {
    steps.iter().find_map(|step| match step {
        Step::Decided {
            outcome, evidence, ..
        } => Some((outcome, evidence.iter().map(String::as_str).collect())),
        _ => None,
    })
}

fn counts(steps: &[Step]) -> Vec<(u32, u32, u32, u32)> {
    let progress = steps.iter().rev().find_map(|step| match step {
        Step::Progress(progress) => Some(progress),
        _ => None,
    });
    let roles = progress
        .map(|progress| progress.roles.as_slice())
        .unwrap_or_default();
    roles
        .iter()
        .map(|role| (role.pending, role.running, role.succeeded, role.failed))
        .collect()
}
