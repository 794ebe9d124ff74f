//! Following a run over a connection that breaks: no line is lost or repeated, and the result is
//! correct.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::fake::{
    Answer, End, Fake, ReceivedRequest, Script, list,
    run::{ended, event, follow, follow_with, job, pod, run, texts},
    status,
};
use futures::{StreamExt, stream};
use longshore_launcher::{Event, Follow, FollowOptions, follow::Ending};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The cluster's response about a lost pod of `main`.
fn lost_node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning",
        "metadata": {"name": "lost", "namespace": "default"},
        "reason": "NodeNotReady", "message": "Node is not ready",
        "involvedObject": {"kind": "Pod", "name": "demo-ab2cd-main-0-x", "uid": "pod-main"},
    })
}

/// Responds to lists and watches; the test provides the logs.
pub(crate) fn cluster(
    jobs: Vec<Value>,
    pods: Vec<Value>,
    pod_events: Vec<String>,
    logs: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
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
            path => panic!("unexpected request for {path}"),
        }
    })
}

pub(crate) fn whole_log() -> Answer {
    Answer::Stream(texts(&["2026-01-01T00:00:01Z one\n"]), End::Ends)
}

/// The Job has deleted the pods of a cancelled run, and the cluster keeps their logs.
#[tokio::test]
async fn the_kept_logs_of_deleted_pods_are_read() {
    let mut cancelled = job("main");
    cancelled["metadata"]["uid"] = json!("job-main");
    cancelled["metadata"]["annotations"]["longshore.dev/cancelled"] = json!("2026-01-01T00:01:00Z");
    cancelled["spec"]["suspend"] = json!(true);
    let kept = |uid: &str, owner: &str| {
        let mut pod = pod("main", "8", json!({}), "Running");
        pod["metadata"]["uid"] = json!(uid);
        json!({
            "metadata": pod["metadata"],
            "owner": {"kind": "Job", "name": "demo-ab2cd-main", "uid": owner},
            "containers": [{"name": "main", "instances": [{"restart": 0, "isCut": false}]}],
        })
    };
    // An earlier run had the same name.
    let items = [kept("old", "another"), kept("deleted", "job-main")];
    let fake = cluster(vec![cancelled], vec![], vec![], |asked| {
        match asked.query.contains("uid=deleted") {
            true => whole_log(),
            false => status(404, "NotFound", "no such pod"),
        }
    })
    .with(move |asked| {
        let document = json!({"kind": "PodLogsList", "items": items});
        asked
            .path
            .ends_with("/pods/*/log")
            .then(|| Answer::Json(200, document))
    });
    let run = run(&[("main", 1, false)]);
    let (lines, outcome) = follow(&fake, &run).await;
    assert_eq!(lines, ["main/0 | one"]);
    assert_eq!((outcome.ending, outcome.gaps), (Ending::Cancelled, 0));
}

#[tokio::test]
async fn a_log_survives_broken_connections() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    // While the log is followed, the connection breaks or ends early several times.
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
async fn the_first_failure_is_reported_and_the_other_roles_are_stopped() {
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
    let stopped = fake.requests.lock().unwrap();
    let patches: Vec<_> = stopped
        .iter()
        .filter(|asked| asked.method == "PATCH")
        .collect();
    let paths: Vec<&str> = patches
        .iter()
        .map(|asked| asked.path.rsplit('/').next().unwrap())
        .collect();
    // The end is recorded first. The Job of the failed task fails by itself, and keeps the pod with
    // its log.
    assert_eq!(
        paths,
        ["demo-ab2cd-ps", "demo-ab2cd-worker", "demo-ab2cd-ps"]
    );
    let end = |patch: &ReceivedRequest| {
        let text = patch.body["metadata"]["annotations"]["longshore.dev/ended"].as_str();
        let end: Value = serde_json::from_str(text.unwrap()).unwrap();
        (end["ending"].clone(), end["exitCode"].clone())
    };
    assert_eq!(end(patches[0]), (json!("failed"), json!(3)));
    let stopped = patches.iter().skip(1);
    for (patch, suspend) in stopped.zip([Value::Null, Value::Bool(true)]) {
        assert_eq!(patch.body["spec"]["suspend"], suspend);
        let notes = &patch.body["metadata"]["annotations"];
        assert!(notes["longshore.dev/stopped"].is_string());
        assert_eq!(end(patch), (json!("failed"), json!(3)));
    }
}

/// The follower of the run ended before it could report the result, and the pods were
/// deleted.
#[tokio::test]
async fn the_result_of_a_stopped_run_is_reported_without_its_pods() {
    let mut stopped = job("worker");
    stopped["spec"]["suspend"] = json!(true);
    let why = json!({
        "kind": "exit-code", "role": "worker", "index": 0,
        "cause": "its command ended with exit code 76", "remedy": "read its log",
    });
    stopped["metadata"]["annotations"] = json!({
        "longshore.dev/stopped": "2026-01-01T00:00:00Z: worker/0: its command ended with exit code 76",
        "longshore.dev/why": why.to_string(),
        "longshore.dev/ended": r#"{"ending":"failed","exitCode":76}"#,
    });
    let fake = cluster(vec![stopped], vec![], vec![], |_| {
        Answer::Stream(vec![], End::Ends)
    });
    let (_, outcome) = follow(&fake, &run(&[("worker", 1, false)])).await;
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Failed, 76));
    assert_eq!(outcome.task.unwrap().to_string(), "worker/0");
    assert_eq!(fake.writes(), [""; 0]);
}

#[tokio::test]
async fn a_missing_command_is_recognized_by_its_log() {
    let fake = cluster(vec![job("main")], vec![ended("main", 127)], vec![], |_| {
        Answer::Stream(
            texts(&["2026-01-01T00:00:01Z longshore: command not found: pyton\n"]),
            End::Ends,
        )
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    // The log explains the end, but does not decide it.
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Failed, 127));
    assert_eq!(outcome.reason, "main/0: command not found: pyton");
}

#[tokio::test]
async fn a_deleted_log_does_not_delay_the_result() {
    let fake = cluster(vec![job("main")], vec![ended("main", 5)], vec![], |_| {
        super::fake::status(404, "NotFound", "pods \"demo-main\" not found")
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    let gap = "lines may be missing: the pod was deleted before its log was read to the end";
    assert_eq!(lines, [format!("main/0 | <attempt 1: {gap}>")]);
    assert_eq!((outcome.exit_code, outcome.gaps), (5, 1));
}

/// The last attempt of `main`, with the counts of its Job.
fn last_of_three() -> Value {
    let mut last = ended("main", 0);
    last["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = json!("1");
    last["metadata"]["annotations"]["batch.kubernetes.io/job-index-ignored-failure-count"] =
        json!("1");
    last
}

fn one_line(_: &ReceivedRequest) -> Answer {
    Answer::Stream(texts(&["2026-01-01T00:00:01Z last\n"]), End::Ends)
}

#[tokio::test]
async fn attempts_whose_pods_were_deleted_before_they_were_seen_are_reported() {
    let main = run(&[("main", 1, false)]);
    let fake = cluster(vec![job("main")], vec![last_of_three()], vec![], one_line);
    let (lines, outcome) = follow(&fake, &main).await;
    let gap = "lines may be missing: the pod was deleted before its log was read to the end";
    let expected = [
        format!("main/0 | <attempt 1: {gap}>"),
        format!("main/0 | <attempt 2: {gap}>"),
        "main/0 | last".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!((outcome.exit_code, outcome.gaps), (0, 2));
    // With only the last lines, earlier attempts are not missing.
    let options = FollowOptions {
        tail: Some(10),
        ..FollowOptions::default()
    };
    let fake = cluster(vec![job("main")], vec![last_of_three()], vec![], one_line);
    let (lines, outcome) = follow_with(&fake, &main, options).await;
    assert_eq!(lines, ["main/0 | last"]);
    assert_eq!(outcome.gaps, 0);
}

#[tokio::test]
async fn a_pod_whose_start_is_seen_with_its_deletion_is_reported() {
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    let mut first = pod("main", "6", waiting, "Pending");
    first["metadata"]["name"] = json!("demo-ab2cd-main-0-a");
    first["metadata"]["uid"] = json!("pod-a");
    let mut deleted = first.clone();
    deleted["metadata"]["resourceVersion"] = json!("7");
    deleted["status"]["phase"] = json!("Running");
    deleted["status"]["containerStatuses"][0]["state"] =
        json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let mut last = ended("main", 0);
    last["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = json!("1");
    let events = vec![event("DELETED", deleted), event("ADDED", last)];
    let fake = cluster(vec![job("main")], vec![first], events, |asked| match asked
        .path
        .contains("-main-0-a/")
    {
        true => status(404, "NotFound", "pods \"demo-ab2cd-main-0-a\" not found"),
        false => one_line(asked),
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    let gap = "lines may be missing: the pod was deleted before its log was read to the end";
    let expected = [
        format!("main/0 | <attempt 1: {gap}>"),
        "main/0 | last".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!(outcome.gaps, 1);
}

#[tokio::test]
async fn lines_that_were_rotated_during_an_outage_are_reported_as_lost() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let before = "2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n";
    // The log of a kubelet after a rotation contains only the current file.
    let after = "2026-01-01T00:00:40Z fifty\n2026-01-01T00:00:41Z end\n";
    let followed = Script::new([
        (texts(&[before]), End::Breaks),
        (texts(&[after]), End::Ends),
    ]);
    // The pod ends once its log was requested again.
    let (again, asks_again) = (Arc::new(Notify::new()), AtomicUsize::new(0));
    let end = again.clone();
    let events = stream::once(async move {
        end.notified().await;
        Ok(event("MODIFIED", ended("main", 0)))
    });
    let events = Mutex::new(Some(events.chain(stream::pending()).boxed()));
    let fake = cluster(vec![job("main")], vec![running], vec![], move |asked| {
        if !asked.query.contains("follow=true") {
            return Answer::Stream(texts(&[after]), End::Ends);
        }
        if asks_again.fetch_add(1, Relaxed) == 1 {
            again.notify_one();
        }
        followed.next()
    });
    let fake = fake.with(move |asked| {
        let is_watch = asked.path.ends_with("/pods") && asked.query.contains("watch=");
        is_watch.then(|| Answer::Live(events.lock().unwrap().take().unwrap()))
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    let gap = "lines between 2026-01-01T00:00:02Z and 2026-01-01T00:00:40Z may be missing: the log was rotated before they were read";
    let expected = [
        "main/0 | one",
        "main/0 | two",
        &format!("main/0 | <{gap}>"),
        "main/0 | fifty",
        "main/0 | end",
    ];
    assert_eq!(lines, expected);
    assert_eq!(outcome.gaps, 1);
    assert_eq!(outcome.ending, Ending::Succeeded);
}

/// A kubelet that has started two more files skips the one between them. The follower waits for its
/// reader and requests the current file meanwhile.
#[tokio::test]
async fn a_file_that_a_slow_reader_missed_is_reported() {
    const LINES: usize = 3000;
    let second = |second: usize| {
        format!(
            "2026-01-01T{:02}:{:02}:{:02}Z",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    };
    let lines = |from: usize, to: usize| -> String {
        (from..to)
            .map(|n| format!("{} line {n}\n", second(n)))
            .collect()
    };
    let pieces = [lines(0, LINES), lines(LINES + 1000, LINES + 1010)].to_vec();
    let last = lines(LINES + 1000, LINES + 1010);
    let head = lines(LINES + 500, LINES + 501);
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let (end, ends) = tokio::sync::oneshot::channel();
    let events = stream::once(async {
        ends.await.unwrap();
        Ok(event("MODIFIED", ended("main", 0)))
    });
    let events = Mutex::new(Some(events.chain(stream::pending()).boxed()));
    let fake = cluster(vec![job("main")], vec![running], vec![], move |asked| {
        let query = &asked.query;
        match () {
            () if query.contains("limitBytes") => Answer::Stream(vec![head.clone()], End::Ends),
            () if query.contains("follow=true") => Answer::Stream(pieces.clone(), End::StaysOpen),
            () => Answer::Stream(vec![last.clone()], End::Ends),
        }
    });
    let fake = fake.with(move |asked| {
        let is_watch = asked.path.ends_with("/pods") && asked.query.contains("watch=");
        is_watch.then(|| Answer::Live(events.lock().unwrap().take().unwrap()))
    });
    let run = run(&[("main", 1, false)]);
    let options = FollowOptions::default();
    let mut follow = Follow::start(&fake.cluster(), &run, options).await.unwrap();
    let begin = Instant::now();
    let is_probe = |asked: &ReceivedRequest| asked.query.contains("limitBytes");
    while !fake.requests.lock().unwrap().iter().any(is_probe) {
        assert!(begin.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    end.send(()).unwrap();
    let mut logs = Vec::new();
    let outcome = loop {
        match follow.next().await.unwrap().unwrap() {
            Event::Log(line) => logs.push(line.line),
            Event::Gap(gap) => logs.push(gap.to_string()),
            Event::Finished(outcome) => break outcome,
            _ => {}
        }
    };
    let gap = format!(
        "lines between {} and {} may be missing: the log was rotated before they were read",
        second(LINES - 1),
        second(LINES + 1000)
    );
    assert_eq!(logs.len(), LINES + 11);
    assert_eq!(logs[LINES], gap);
    assert_eq!(outcome.gaps, 1);
}

#[tokio::test]
async fn a_pod_without_a_completion_index_is_followed() {
    let waits = json!({"waiting": {"reason": "ErrImageNeverPull", "message": "no"}});
    for (state, phase, lines, code) in [
        (waits, "Pending", vec![], 4),
        (
            json!({"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:09Z"}}),
            "Succeeded",
            vec!["main/0 | one"],
            0,
        ),
    ] {
        // Created by Kubernetes 1.20, which ignores `completionMode`.
        let mut old = pod("main", "9", state, phase);
        let labels = old["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove("batch.kubernetes.io/job-completion-index");
        old["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "batch/v1", "kind": "Job", "name": "demo-ab2cd-main", "uid": "job-main", "controller": true}
        ]);
        let fake = cluster(vec![job("main")], vec![old], vec![], |_| whole_log());
        let (got, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
        assert_eq!(
            (got, outcome.exit_code),
            (lines.into_iter().map(str::to_owned).collect(), code),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_incomplete_line_is_visible() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let fake = cluster(vec![job("main")], vec![running], vec![], |_| {
        Answer::Stream(
            texts(&[
                "2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z  1%\r",
                " 42%\r",
            ]),
            End::StaysOpen,
        )
    });
    let options = FollowOptions {
        unfinished: true,
        ..FollowOptions::default()
    };
    let run = run(&[("main", 1, false)]);
    let mut follow = Follow::start(&fake.cluster(), &run, options).await.unwrap();
    let begin = Instant::now();
    loop {
        let seen = follow.unfinished();
        if seen.iter().any(|line| line.text == " 42%") {
            assert_eq!(seen[0].task.to_string(), "main/0");
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{seen:?}");
        let _ = tokio::time::timeout(Duration::from_millis(10), follow.next()).await;
    }
}

#[tokio::test]
async fn the_result_includes_the_cause_from_events() {
    let fake = cluster(vec![job("main")], vec![ended("main", 143)], vec![], |_| {
        Answer::Stream(vec![], End::Ends)
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(outcome.reason, "main/0: its node was lost");
    assert_eq!(outcome.exit_code, 143);
    // A cause that is known from the status requires no request for events.
    let fake = cluster(vec![job("main")], vec![ended("main", 7)], vec![], |_| {
        Answer::Stream(vec![], End::Ends)
    });
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(outcome.exit_code, 7);
    let asked = fake.requests.lock().unwrap();
    assert!(!asked.iter().any(|asked| asked.path.ends_with("/events")));
}
