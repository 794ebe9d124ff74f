//! The objects of a run, and a follower.

use longshore_launcher::{
    Event, Follow, FollowOptions, Outcome, RunName,
    runs::{Run, RunRole},
};
use serde_json::{Value, json};

use super::Fake;

pub(crate) fn run(roles: &[(&str, u32, bool)]) -> Run {
    let role = |(name, count, service): &(&str, u32, bool)| RunRole {
        name: (*name).to_owned(),
        count: *count,
        service: *service,
    };
    Run {
        name: RunName::existing("demo-ab2cd").unwrap(),
        namespace: "default".into(),
        schedule: None,
        roles: roles.iter().map(role).collect(),
    }
}

pub(crate) fn job(role: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": format!("demo-ab2cd-{role}"), "namespace": "default", "uid": format!("job-{role}"),
            "resourceVersion": "5", "labels": {"longshore.dev/run": "demo-ab2cd", "longshore.dev/role": role},
        },
        "spec": {"backoffLimit": 0},
        "status": {},
    })
}

pub(crate) fn pod(role: &str, version: &str, state: Value, phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("demo-ab2cd-{role}-0-x"), "namespace": "default", "uid": format!("pod-{role}"),
            "resourceVersion": version,
            "labels": {
                "longshore.dev/run": "demo-ab2cd", "longshore.dev/role": role,
                "batch.kubernetes.io/job-completion-index": "0",
            },
        },
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]},
    })
}

pub(crate) fn ended(role: &str, code: i32) -> Value {
    let state = json!({"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:09Z"}});
    pod(
        role,
        "9",
        state,
        if code == 0 { "Succeeded" } else { "Failed" },
    )
}

pub(crate) fn event(kind: &str, object: Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

pub(crate) async fn follow(fake: &Fake, run: &Run) -> (Vec<String>, Outcome) {
    follow_with(fake, run, FollowOptions::default()).await
}

pub(crate) async fn follow_with(
    fake: &Fake,
    run: &Run,
    options: FollowOptions,
) -> (Vec<String>, Outcome) {
    let follow = Follow::start(&fake.cluster(), run, options).await;
    to_end(follow.unwrap()).await
}

/// The lines and the outcome that a follower reports.
pub(crate) async fn to_end(mut follow: Follow) -> (Vec<String>, Outcome) {
    let mut lines = Vec::new();
    while let Some(event) = follow.next().await {
        match event.unwrap() {
            Event::Log(line) => lines.push(format!("{} | {}", line.task, line.line)),
            Event::Gap(gap) => lines.push(format!("{} | <{gap}>", gap.task)),
            Event::Finished(outcome) => {
                assert!(
                    follow.next().await.is_none(),
                    "no event may follow the final one"
                );
                return (lines, outcome);
            }
            _ => {}
        }
    }
    panic!("no final event");
}

pub(crate) fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}
