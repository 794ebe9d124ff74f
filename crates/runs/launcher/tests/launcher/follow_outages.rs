//! Following a run whose server, or node, does not answer for a while.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use longshore_launcher::{Event, Follow, FollowOptions, explain::Cause};
use serde_json::json;

use super::{
    fake::{
        Answer, End, list,
        run::{ended, event, follow, follow_with, job, pod, run, texts},
        status,
    },
    follow::{cluster, whole_log},
};

/// Returns `answer()` the first `times` times, then `then()`.
fn first<T>(times: usize, answer: impl Fn() -> T, then: impl Fn() -> T) -> impl Fn() -> T {
    let left = AtomicUsize::new(times);
    move || {
        let is_first = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if is_first.is_ok() { answer() } else { then() }
    }
}

#[tokio::test]
async fn a_log_is_read_when_the_server_is_reachable_again() {
    // More failures than the retries of a server that rejects requests.
    let log = first(9, || Answer::Unreachable, whole_log);
    let pods = vec![ended("main", 7)];
    let fake = cluster(vec![job("main")], pods, vec![], move |_| log());
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(lines, ["main/0 | one"]);
    assert_eq!(outcome.exit_code, 7);
}

#[tokio::test]
async fn a_log_request_is_retried_while_the_node_does_not_know_its_pods() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let unknown = || status(404, "NotFound", "pods \"x\" not found");
    let one = || Answer::Stream(texts(&["2026-01-01T00:00:01Z one\n"]), End::StaysOpen);
    let log = first(5, unknown, one);
    let events = stream::once(async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(event("MODIFIED", ended("main", 0)))
    });
    let events = Mutex::new(Some(events.chain(stream::pending()).boxed()));
    let fake = cluster(
        vec![job("main")],
        vec![running],
        vec![],
        move |asked| match asked.query.contains("follow=true") {
            true => log(),
            false => whole_log(),
        },
    );
    let fake = fake.with(move |asked| {
        let is_watch = asked.path.ends_with("/pods") && asked.query.contains("watch=");
        is_watch.then(|| Answer::Live(events.lock().unwrap().take().unwrap()))
    });
    let (lines, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(lines, ["main/0 | one"]);
    assert_eq!(outcome.exit_code, 0);
}

/// The connection is dead without any error.
#[tokio::test]
async fn a_dead_connection_does_not_hide_the_end_of_a_log() {
    let running = pod("main", "8", json!({"running": {}}), "Running");
    let fake = cluster(
        vec![job("main")],
        vec![running],
        vec![event("MODIFIED", ended("main", 0))],
        |asked| match asked.query.contains("follow=true") {
            true => Answer::Stream(texts(&["2026-01-01T00:00:01Z one\n2026-"]), End::StaysOpen),
            false => Answer::Stream(
                texts(&["2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n"]),
                End::Ends,
            ),
        },
    );
    let (lines, _) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(lines, ["main/0 | one", "main/0 | two"]);
}

#[tokio::test]
async fn the_other_roles_are_stopped_when_the_server_is_reachable_again() {
    let running = pod("ps", "8", json!({"running": {}}), "Running");
    let fake = cluster(
        vec![job("ps"), job("worker")],
        vec![running, ended("worker", 3)],
        vec![],
        |asked| match asked.path.contains("worker") {
            true => whole_log(),
            false => Answer::Stream(vec![], End::StaysOpen),
        },
    );
    let away = first(6, || true, || false);
    let fake =
        fake.with(move |asked| (asked.method == "PATCH" && away()).then_some(Answer::Unreachable));
    let (_, outcome) = follow(&fake, &run(&[("ps", 1, true), ("worker", 1, false)])).await;
    assert_eq!(outcome.exit_code, 3);
    let writes = fake.writes();
    let of = |job: &str| writes.iter().filter(|path| path.ends_with(job)).count();
    assert!(of("-worker") > 0 && of("-ps") > 6, "{writes:?}");
}

#[tokio::test]
async fn a_run_is_followed_when_the_server_responds_again() {
    let fake = cluster(vec![job("main")], vec![ended("main", 5)], vec![], |_| {
        whole_log()
    });
    let away = first(6, || true, || false);
    let fake = fake.with(move |_| away().then_some(Answer::Unreachable));
    let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
    assert_eq!(outcome.exit_code, 5);
}

/// A task that appears to wait may have started while the server was unreachable.
#[tokio::test]
async fn no_task_is_given_up_based_on_its_state_before_an_outage() {
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "later"}});
    for (later, code) in [
        (ended("main", 0), 0),
        (pod("main", "9", waits.clone(), "Pending"), 4),
    ] {
        let begin = Instant::now();
        let fake = cluster(vec![job("main")], vec![later], vec![], |_| whole_log());
        let waits = pod("main", "8", waits.clone(), "Pending");
        let fake = fake.with(move |asked| {
            let is_pods = asked.path.ends_with("/pods");
            let away = Duration::from_millis(500)..Duration::from_secs(4);
            match begin.elapsed() {
                now if away.contains(&now) => Some(Answer::Unreachable),
                now if now < away.start && is_pods && asked.query.contains("watch=") => {
                    let cut = stream::once(async {
                        tokio::time::sleep(Duration::from_millis(400)).await;
                        Err(std::io::Error::other("cut"))
                    });
                    Some(Answer::Live(cut.boxed()))
                }
                now if now < away.start && is_pods => Some(list("Pod", "v1", vec![waits.clone()])),
                _ => None,
            }
        });
        let options = FollowOptions {
            start_timeout: Duration::from_secs(1),
            ..FollowOptions::default()
        };
        let run = run(&[("main", 1, false)]);
        let (_, outcome) = follow_with(&fake, &run, options).await;
        assert_eq!(outcome.exit_code, code, "{outcome:?}");
        assert!(begin.elapsed() > Duration::from_secs(4));
    }
}

/// The watch of Jobs may be ahead of the watch of pods, for example after an outage.
#[tokio::test]
async fn a_failed_job_is_only_reported_after_its_pods_were_listed_again() {
    for (later, code) in [(vec![ended("main", 44)], 44), (vec![], 1)] {
        let mut failed = job("main");
        failed["metadata"]["resourceVersion"] = json!("6");
        failed["status"] = json!({"failed": 1, "conditions": [{
            "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
            "lastTransitionTime": "2026-01-01T00:00:09Z",
        }]});
        let fake = cluster(vec![failed.clone()], later, vec![], |_| whole_log());
        let (jobs, pods) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let running = pod("main", "8", json!({"running": {}}), "Running");
        let fake = fake.with(move |asked| {
            let is_watch = asked.query.contains("watch=");
            match asked.path.as_str() {
                path if path.ends_with("/jobs") && is_watch => {
                    let change = event("MODIFIED", failed.clone());
                    Some(Answer::Stream(vec![change], End::StaysOpen))
                }
                path if path.ends_with("/jobs") && jobs.fetch_add(1, Relaxed) == 0 => {
                    Some(list("Job", "batch/v1", vec![job("main")]))
                }
                path if path.ends_with("/pods") && !is_watch && pods.fetch_add(1, Relaxed) == 0 => {
                    Some(list("Pod", "v1", vec![running.clone()]))
                }
                _ => None,
            }
        });
        let (_, outcome) = follow(&fake, &run(&[("main", 1, false)])).await;
        assert_eq!(outcome.exit_code, code, "{outcome:?}");
    }
}

/// The end of a run is decided from a list. While the cluster cannot be listed, this is reported.
/// Without permission to list, the watches decide.
#[tokio::test]
async fn the_end_waits_for_a_list_unless_it_is_forbidden() {
    for is_forbidden in [false, true] {
        let begin = Instant::now();
        let running = pod("main", "8", json!({"running": {}}), "Running");
        let change = event("MODIFIED", ended("main", 7));
        let fake = cluster(vec![job("main")], vec![running], vec![change], |_| {
            whole_log()
        });
        let lists = AtomicUsize::new(0);
        let fake = fake.with(move |asked| {
            let is_list = asked.path.ends_with("/jobs") && asked.method == "GET";
            if !is_list || asked.query.contains("watch=") || lists.fetch_add(1, Relaxed) == 0 {
                return None;
            }
            let forbidden = || status(403, "Forbidden", "jobs is forbidden");
            if is_forbidden {
                return Some(forbidden());
            }
            (begin.elapsed() < Duration::from_secs(7)).then_some(Answer::Unreachable)
        });
        let run = run(&[("main", 1, false)]);
        let options = FollowOptions::default();
        let mut follow = Follow::start(&fake.cluster(), &run, options).await.unwrap();
        let mut outages = 0;
        let outcome = loop {
            match follow.next().await.unwrap().unwrap() {
                Event::Waiting(why) => outages += usize::from(why.kind == Cause::ClusterAway),
                Event::Finished(outcome) => break outcome,
                _ => {}
            }
        };
        assert_eq!(outcome.exit_code, 7, "{outcome:?}");
        assert_eq!(outages, usize::from(!is_forbidden));
    }
}
