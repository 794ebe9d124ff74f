//! Following a run over a connection that breaks: nothing lost, nothing
//! doubled, the right end.
#![allow(clippy::unwrap_used)]

mod fake;

use fake::{Answer, Asked, End, Fake, Script, list, status};
use longshore_launcher::{
    Event, Follow, FollowOptions, Outcome, RunName,
    follow::Ending,
    runs::{Run, RunRole},
};
use serde_json::{Value, json};

fn run(roles: &[(&str, u32, bool)]) -> Run {
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

fn job(role: &str) -> Value {
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

fn pod(role: &str, version: &str, state: Value, phase: &str) -> Value {
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

fn ended(role: &str, code: i32) -> Value {
    let state = json!({"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:09Z"}});
    pod(
        role,
        "9",
        state,
        if code == 0 { "Succeeded" } else { "Failed" },
    )
}

/// What the cluster tells of the pod of `main`.
fn lost_node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning",
        "metadata": {"name": "lost", "namespace": "default"},
        "reason": "NodeNotReady", "message": "Node is not ready",
        "involvedObject": {"kind": "Pod", "name": "demo-ab2cd-main-0-x", "uid": "pod-main"},
    })
}

fn event(kind: &str, object: Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// Answers lists and watches; logs come from the test.
fn cluster(
    jobs: Vec<Value>,
    pods: Vec<Value>,
    pod_events: Vec<String>,
    logs: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> Fake {
    Fake::new(move |asked| {
        let is_watch = asked.query.contains("watch=");
        match asked.path.as_str() {
            path if path.ends_with("/log") => logs(asked),
            path if asked.method == "PATCH" => {
                let role = path.rsplit('-').next().unwrap();
                Answer::Json(200, job(role))
            }
            path if path.ends_with("/jobs") && is_watch => Answer::Stream(vec![], End::StaysOpen),
            path if path.ends_with("/jobs") => list("Job", "batch/v1", jobs.clone()),
            path if path.ends_with("/pods") && is_watch => {
                Answer::Stream(pod_events.clone(), End::StaysOpen)
            }
            path if path.ends_with("/pods") => list("Pod", "v1", pods.clone()),
            path if path.ends_with("/events") => list("Event", "v1", vec![lost_node()]),
            "/api/v1/nodes" => status(403, "Forbidden", "no"),
            path => panic!("asked for {path}"),
        }
    })
}

async fn follow(fake: &Fake, run: &Run) -> (Vec<String>, Outcome) {
    let mut follow = Follow::start(&fake.cluster(), run, FollowOptions::default())
        .await
        .unwrap();
    let mut lines = Vec::new();
    while let Some(event) = follow.next().await {
        match event.unwrap() {
            Event::Log(line) => lines.push(format!("{} | {}", line.task, line.line)),
            Event::Finished(outcome) => {
                assert!(follow.next().await.is_none(), "nothing comes after the end");
                return (lines, outcome);
            }
            _ => {}
        }
    }
    panic!("no end was told");
}

fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_log_survives_broken_connections() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    // Followed, the connection breaks, or ends too early, again and again.
    let followed = Script::new([
        (
            texts(&["2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:02Z tw"]),
            End::Breaks,
        ),
        (
            texts(&["2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:02Z two\n"]),
            End::Ends,
        ),
    ]);
    let whole = "2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:02Z two\n2026-01-01T00:00:02Z two\n2026-01-01T00:00:03Z end";
    let fake = cluster(
        vec![job("main")],
        vec![running],
        vec![event("MODIFIED", ended("main", 0))],
        move |asked| match asked.query.contains("follow=true") {
            true => followed.next(),
            false => Answer::Stream(texts(&[whole]), End::Ends),
        },
    );
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(
        lines,
        [
            "main/0 | one",
            "main/0 | two",
            "main/0 | two",
            "main/0 | end"
        ]
    );
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Succeeded, 0));
    assert_eq!(fake.writes(), [""; 0]);
}

#[tokio::test]
async fn the_first_failure_is_told_and_the_rest_is_stopped() {
    let running = pod("ps", "8", json!({"running": {}}), "Running");
    let fake = cluster(
        vec![job("ps"), job("worker")],
        vec![running, ended("worker", 3)],
        vec![],
        |asked| match asked.path.contains("worker") {
            true => Answer::Stream(texts(&["2026-01-01T00:00:01Z oh no\n"]), End::Ends),
            false => Answer::Stream(vec![], End::StaysOpen),
        },
    );
    let (lines, outcome) = follow(&fake, &run(&[("ps", 1, true), ("worker", 1, false)])).await;
    assert_eq!(lines, ["worker/0 | oh no"]);
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Failed, 3));
    assert_eq!(outcome.task.unwrap().to_string(), "worker/0");
    let stopped = fake.asked.lock().unwrap();
    let patches: Vec<_> = stopped
        .iter()
        .filter(|asked| asked.method == "PATCH")
        .collect();
    let paths: Vec<&str> = patches
        .iter()
        .map(|asked| asked.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(paths, ["demo-ab2cd-ps", "demo-ab2cd-worker"]);
    assert_eq!(patches[0].body["spec"]["suspend"], true);
    assert!(patches[0].body["metadata"]["annotations"]["longshore.dev/stopped"].is_string());
}

#[tokio::test]
async fn a_command_that_is_not_there_is_known_by_its_log() {
    let fake = cluster(vec![job("main")], vec![ended("main", 127)], vec![], |_| {
        Answer::Stream(
            texts(&["2026-01-01T00:00:01Z longshore: command not found: pyton\n"]),
            End::Ends,
        )
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::NotStarted, 4));
    assert_eq!(outcome.reason, "main/0: command not found: pyton");
}

#[tokio::test]
async fn a_log_that_is_gone_does_not_keep_the_end_back() {
    let fake = cluster(vec![job("main")], vec![ended("main", 5)], vec![], |_| {
        fake::status(404, "NotFound", "pods \"demo-main\" not found")
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert!(lines.is_empty());
    assert_eq!(outcome.exit_code, 5);
}

#[tokio::test]
async fn the_end_is_told_with_what_events_know() {
    let fake = cluster(vec![job("main")], vec![ended("main", 143)], vec![], |_| {
        Answer::Stream(vec![], End::Ends)
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(outcome.reason, "main/0: its node was lost");
    assert_eq!(outcome.exit_code, 143);
    // What is plain by itself is not asked about.
    let fake = cluster(vec![job("main")], vec![ended("main", 7)], vec![], |_| {
        Answer::Stream(vec![], End::Ends)
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(outcome.exit_code, 7);
    let asked = fake.asked.lock().unwrap();
    assert!(!asked.iter().any(|asked| asked.path.ends_with("/events")));
}
