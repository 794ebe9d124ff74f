//! Tests of the state machine: sequences of inputs and the resulting steps.
#![allow(clippy::unwrap_used)]

use longshore_diagnosis::evidence;
use serde_json::{Value, json};

use super::span::span;
use super::*;
use longshore_diagnosis::outcome::Ending;

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

fn going_on(track: &Track) -> Vec<&str> {
    let jobs = track.going_on().into_iter();
    jobs.map(|job| job.metadata.name.as_str()).collect()
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

#[test]
fn a_run_goes_from_pending_to_success() {
    let mut track = track(&[role("worker", 2)]);
    let steps = track.see(pod("worker", 0, running()), at(1));
    assert_eq!(counts(&steps), [(1, 1, 0, 0)]);
    assert!(steps.contains(&Step::Read {
        uid: "worker-0".into(),
        pod: "run-worker-0-x".into(),
        task: Task {
            role: "worker".into(),
            index: 0
        },
        container: "main".into(),
        is_main: true,
    }));
    assert_eq!(
        track.see(pod("worker", 0, running()), at(1)),
        [],
        "nothing changed, nothing to do"
    );
    let steps = track.see(pod("worker", 0, ended(0, 2)), at(2));
    assert!(steps.contains(&Step::Ended {
        uid: "worker-0".into()
    }));
    assert_eq!(outcome(&steps), None);
    let steps = track.see(pod("worker", 1, ended(0, 3)), at(3));
    assert_eq!(counts(&steps), [(0, 0, 2, 0)]);
    let (outcome, evidence) = outcome(&steps).unwrap();
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Succeeded, 0));
    assert_eq!(evidence, ["worker-0", "worker-1"]);
    let again = track.see(Seen::Tick, at(4));
    assert_eq!(super::tests::outcome(&again), None, "a run is decided once");
}

/// A role's Job with this many completions.
fn scaled(role: &str, completions: u32, status: Value) -> Seen {
    let value = json!({
        "metadata": {"name": format!("run-{role}"), "labels": {"longshore.dev/role": role}},
        "spec": {"backoffLimit": 0, "completions": completions, "parallelism": completions},
        "status": status,
    });
    Seen::Job(Box::new(serde_json::from_value(value).unwrap()))
}

#[test]
fn a_role_has_as_many_tasks_as_its_job_was_scaled_to() {
    let mut track = track(&[role("worker", 1)]);
    track.see(pod("worker", 0, running()), at(1));
    let steps = track.see(scaled("worker", 2, json!({})), at(2));
    assert_eq!(counts(&steps), [(1, 1, 0, 0)]);
    track.see(pod("worker", 1, running()), at(3));
    let steps = track.see(pod("worker", 0, ended(0, 4)), at(4));
    assert_eq!(
        (counts(&steps), outcome(&steps)),
        (vec![(0, 1, 1, 0)], None)
    );
    // Tasks removed by scaling are not waited for.
    let steps = track.see(scaled("worker", 1, json!({})), at(5));
    let (outcome, _) = outcome(&steps).unwrap();
    assert_eq!(outcome.ending, Ending::Succeeded);
}

#[test]
fn the_first_failure_decides_while_its_peers_run() {
    let mut track = track(&[role("ps", 1), role("worker", 2)]);
    track.see(pod("worker", 0, running()), at(1));
    let steps = track.see(pod("worker", 1, ended(3, 2)), at(2));
    let (outcome, evidence) = outcome(&steps).unwrap();
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::Failed, 3));
    assert_eq!(outcome.task.as_ref().unwrap().to_string(), "worker/1");
    assert_eq!(
        outcome.reason,
        "worker/1: its command ended with exit code 3"
    );
    assert_eq!(evidence, ["worker-1"]);
    assert_eq!(
        going_on(&track),
        ["run-ps", "run-worker"],
        "these are to be stopped"
    );
    track.see(
        job("worker", condition("Failed", "BackoffLimitExceeded")),
        at(3),
    );
    assert_eq!(going_on(&track), ["run-ps"]);
}

#[test]
fn the_earliest_failure_counts_and_killed_tasks_last() {
    let roles = [role("worker", 4)];
    let mut track = Track::new(roles.to_vec(), Duration::from_secs(600), at(0));
    track.see(
        job("worker", condition("Failed", "BackoffLimitExceeded")),
        at(9),
    );
    track.see(pod("worker", 0, ended(143, 5)), at(9));
    track.see(pod("worker", 1, ended(1, 7)), at(9));
    track.see(pod("worker", 2, ended(9, 5)), at(9));
    track.see(pod("worker", 3, ended(0, 1)), at(9));
    let steps = track.see(Seen::Synced, at(9));
    let (outcome, _) = outcome(&steps).unwrap();
    assert_eq!(
        (outcome.exit_code, outcome.task.as_ref().unwrap().index),
        (9, 2)
    );
}

#[test]
fn service_roles_do_not_delay_the_end_of_a_run() {
    let mut track = track(&[role("ps", 1), role("worker", 1)]);
    track.see(pod("ps", 0, running()), at(1));
    let steps = track.see(pod("worker", 0, ended(0, 2)), at(2));
    let (outcome, evidence) = outcome(&steps).unwrap();
    assert_eq!(outcome.ending, Ending::Succeeded);
    assert_eq!(evidence, ["worker-0"]);
    assert_eq!(going_on(&track), ["run-ps"]);
}

#[test]
fn with_retries_a_failed_pod_does_not_end_the_run() {
    let mut track = track(&[role("main", 1)]);
    track.see(changed_job("main", json!({}), json!({}), 1), at(0));
    assert_eq!(
        outcome(&track.see(pod("main", 0, ended(1, 1)), at(1))),
        None
    );
    let status = condition("Failed", "BackoffLimitExceeded");
    let steps = track.see(changed_job("main", status, json!({}), 1), at(2));
    assert_eq!(outcome(&steps).unwrap().0.exit_code, 1);
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

#[test]
fn a_replaced_deleted_pod_is_not_the_cause_of_the_failure() {
    for order in [[0, 1], [1, 0]] {
        let mut track = track(&[role("main", 1)]);
        track.see(changed_job("main", json!({}), json!({}), 3), at(0));
        let pods = [
            attempt(1, true, 0, ended(143, 2)),
            attempt(3, false, 0, ended(7, 5)),
        ];
        for which in order {
            assert_eq!(outcome(&track.see(pods[which].clone(), at(5))), None);
        }
        track.see(Seen::PodGone("8-0".into()), at(5));
        let status = condition("Failed", "PodFailurePolicy");
        let steps = track.see(changed_job("main", status, json!({}), 3), at(6));
        let (found, evidence) = outcome(&steps).unwrap();
        assert_eq!((found.exit_code, evidence), (7, vec!["6-0"]));
    }
}

#[test]
fn a_retried_attempt_is_not_the_cause_of_the_failure() {
    let mut track = track(&[role("main", 2)]);
    track.see(changed_job("main", json!({}), json!({}), 1), at(0));
    track.see(attempt(1, false, 0, ended(1, 2)), at(2));
    let steps = track.see(attempt(3, false, 0, running()), at(3));
    assert_eq!(counts(&steps), [(1, 1, 0, 0)]);
    track.see(attempt(1, false, 1, ended(7, 4)), at(4));
    let status = condition("Failed", "BackoffLimitExceeded");
    let steps = track.see(changed_job("main", status, json!({}), 1), at(5));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!(
        (found.exit_code, found.task.as_ref().unwrap().index),
        (7, 1)
    );
    assert_eq!(counts(&steps), [(0, 1, 0, 1)]);
}

#[test]
fn a_failed_job_waits_for_the_pod_with_the_cause() {
    let mut track = track(&[role("main", 1)]);
    let steps = track.see(
        job("main", condition("Failed", "BackoffLimitExceeded")),
        at(1),
    );
    assert_eq!(outcome(&steps), None);
    let steps = track.see(pod("main", 0, ended(7, 1)), at(1));
    assert_eq!(outcome(&steps).unwrap().0.exit_code, 7);
}

#[test]
fn tasks_killed_by_a_deadline_are_not_the_cause() {
    let mut track = track(&[role("main", 1)]);
    let steps = track.see(
        job("main", condition("FailureTarget", "DeadlineExceeded")),
        at(1),
    );
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::Failed, 1));
    assert_eq!(found.reason, "main: the run took longer than its `timeout`");
}

#[test]
fn a_job_without_pods_decides_after_a_while() {
    let mut failed = track(&[role("main", 1)]);
    let steps = failed.see(
        job("main", condition("Failed", "BackoffLimitExceeded")),
        at(1),
    );
    assert_eq!(outcome(&steps), None);
    let steps = failed.see(Seen::Tick, at(4));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::Failed, 1));

    let mut complete = track(&[role("main", 1)]);
    let steps = complete.see(
        job("main", condition("Complete", "CompletionsReached")),
        at(1),
    );
    assert_eq!(outcome(&steps), None, "the pods' logs may still be to come");
    assert_eq!(
        outcome(&complete.see(Seen::Tick, at(4))).unwrap().0.ending,
        Ending::Succeeded
    );
}

#[test]
fn a_pod_that_ends_because_of_a_cancellation_is_not_a_failure() {
    let mut track = track(&[role("main", 1)]);
    let Seen::Pod(mut killed) = pod("main", 0, ended(143, 2)) else {
        panic!()
    };
    killed.metadata.deletion_timestamp = Some(at(1));
    assert_eq!(outcome(&track.see(Seen::Pod(killed), at(2))), None);
    let annotations = json!({"longshore.dev/cancelled": "now"});
    let steps = track.see(changed_job("main", json!({}), annotations, 0), at(2));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Cancelled);
}

#[test]
fn cancelled_and_removed_runs_end() {
    let mut cancelled = track(&[role("main", 1)]);
    cancelled.see(pod("main", 0, running()), at(1));
    let annotations = json!({"longshore.dev/cancelled": "now"});
    let steps = cancelled.see(changed_job("main", json!({}), annotations, 0), at(2));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::Cancelled, 130));
    assert!(cancelled.going_on().is_empty());

    let mut removed = track(&[role("main", 1)]);
    let steps = removed.see(Seen::JobGone("main".into()), at(2));
    assert_eq!(outcome(&steps).unwrap().0.reason, "the run was removed");
}

fn waiting(reason: &str) -> Value {
    json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "fetch", "state": {"waiting": {"reason": reason, "message": "back-off"}}},
    ]})
}

#[test]
fn a_task_that_cannot_start_is_given_up_after_its_wait_limit() {
    let mut pull = track(&[role("main", 1)]);
    let steps = pull.see(pod("main", 0, waiting("ErrImagePull")), at(0));
    assert!(
        matches!(&steps[0], Step::Waiting(why) if why.sentence().starts_with("main/0: ") && why.cause.contains("cannot be pulled"))
    );
    let steps = pull.see(pod("main", 0, waiting("ImagePullBackOff")), at(30));
    assert!(steps.is_empty(), "the same cause is reported once");
    assert_eq!(outcome(&pull.see(Seen::Tick, at(59))), None);
    let steps = pull.see(Seen::Tick, at(61));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::NotStarted, 4));
    assert!(
        found
            .remedy
            .as_ref()
            .unwrap()
            .contains("image_pull_secrets")
    );

    let mut mended = track(&[role("main", 1)]);
    mended.see(pod("main", 0, waiting("ErrImagePull")), at(0));
    mended.see(pod("main", 0, running()), at(5));
    assert_eq!(outcome(&mended.see(Seen::Tick, at(1000))), None);

    let mut wrong = track(&[role("main", 1)]);
    let steps = wrong.see(pod("main", 0, waiting("InvalidImageName")), at(0));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::NotStarted);
}

#[test]
fn time_in_a_queue_does_not_count() {
    let held = |suspend: bool| {
        let value = json!({
            "metadata": {"name": "run-main", "labels": {"longshore.dev/role": "main"}},
            "spec": {"suspend": suspend},
        });
        Seen::Job(Box::new(serde_json::from_value(value).unwrap()))
    };
    let mut track = track(&[role("main", 1)]);
    track.see(held(true), at(1));
    assert_eq!(outcome(&track.see(Seen::Tick, at(5_000))), None);
    assert_eq!(outcome(&track.see(held(false), at(5_001))), None);
    assert_eq!(outcome(&track.see(Seen::Tick, at(5_600))), None);
    let steps = track.see(Seen::Tick, at(5_601));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::NotStarted);
}

#[test]
fn unschedulable_tasks_wait_as_long_as_the_run_allows() {
    let mut track = track(&[role("main", 1)]);
    let status = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }]});
    let steps = track.see(pod("main", 0, status), at(0));
    assert!(matches!(&steps[0], Step::Waiting(why) if why.remedy.starts_with("request less cpu")));
    assert_eq!(outcome(&track.see(Seen::Tick, at(599))), None);
    let steps = track.see(Seen::Tick, at(600));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!(
        found.reason,
        "main/0: no node has enough cpu free: 0/1 nodes are available: 1 Insufficient cpu."
    );
}

#[test]
fn a_pod_that_never_starts_is_given_up() {
    let mut track = track(&[role("main", 1)]);
    let state = json!({"waiting": {"reason": "ContainerCreating"}});
    track.see(pod("main", 0, main(state.clone(), "Pending")), at(0));
    track.see(pod("main", 0, main(state, "Pending")), at(300));
    assert_eq!(outcome(&track.see(Seen::Tick, at(599))), None);
    let steps = track.see(Seen::Tick, at(600));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!(found.ending, Ending::NotStarted);
    assert_eq!(
        found.reason,
        "main/0: it did not start within 600 s (ContainerCreating)"
    );
}

#[test]
fn a_run_whose_pods_are_never_created_ends() {
    let mut track = track(&[role("main", 1)]);
    assert_eq!(outcome(&track.see(Seen::Tick, at(599))), None);
    let steps = track.see(Seen::Tick, at(601));
    assert!(
        outcome(&steps)
            .unwrap()
            .0
            .reason
            .contains("no pod was created for role \"main\"")
    );
}

#[test]
fn a_failed_fetch_is_explained_from_the_init_container() {
    let mut track = track(&[role("main", 1)]);
    let status = json!({"phase": "Failed", "initContainerStatuses": [
        {"name": "fetch", "state": {"terminated": {"exitCode": 125, "reason": "Error"}}},
    ]});
    let steps = track.see(pod("main", 0, status), at(1));
    assert!(
        steps
            .iter()
            .any(|step| matches!(step, Step::Read { container, .. } if container == "fetch"))
    );
    let (found, evidence) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::NotStarted, 4));
    assert_eq!(evidence, ["main-0"]);
    let pod = track.pod("main-0").unwrap();
    let outcome = track.failed_outcome(pod, 0, Some("longshore: the bundle x is damaged"));
    assert_eq!(
        outcome.reason,
        "main/0: the code could not be fetched: the bundle x is damaged"
    );
}

#[test]
fn a_missing_command_is_not_an_exit_code_of_the_command() {
    let mut track = track(&[role("main", 1)]);
    let steps = track.see(pod("main", 0, ended(127, 1)), at(1));
    assert_eq!(outcome(&steps).unwrap().0.exit_code, 127);
    let pod = track.pod("main-0").unwrap();
    let outcome = track.failed_outcome(pod, 0, Some("longshore: command not found: train"));
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::NotStarted, 4));
    assert_eq!(
        outcome.reason,
        "main/0: command not found: train (command: train --fast)"
    );
    let own = track.failed_outcome(pod, 0, Some("sh: 1: train: not found"));
    assert_eq!(
        (own.ending, own.exit_code),
        (Ending::Failed, 127),
        "the command ran, and ended so"
    );
}

#[test]
fn pods_deleted_after_their_end_still_count() {
    let mut track = track(&[role("worker", 2)]);
    track.see(pod("worker", 0, ended(0, 1)), at(1));
    track.see(Seen::PodGone("worker-0".into()), at(2));
    let steps = track.see(pod("worker", 1, ended(0, 3)), at(3));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Succeeded);
}

fn retries(steps: &[Step]) -> Vec<(u32, u32, &str)> {
    let retries = steps.iter().filter_map(|step| match step {
        Step::Retry(retry) => Some(retry),
        _ => None,
    });
    retries
        .map(|retry| {
            (
                retry.attempt,
                retry.attempts,
                retry.explanation.cause.as_str(),
            )
        })
        .collect()
}

#[test]
fn a_retried_attempt_is_reported_once() {
    let mut track = track(&[role("main", 1)]);
    track.see(changed_job("main", json!({}), json!({}), 2), at(0));
    let steps = track.see(attempt(1, false, 0, ended(3, 5)), at(5));
    let cause = "its command ended with exit code 3";
    assert_eq!(retries(&steps), [(1, 3, cause)]);
    let steps = track.see(attempt(1, false, 0, ended(3, 5)), at(6));
    assert_eq!(retries(&steps), []);
    track.see(attempt(2, false, 0, running()), at(10));
    let steps = track.see(attempt(2, false, 0, ended(3, 20)), at(20));
    assert_eq!(retries(&steps), [(2, 3, cause)]);
    // The last failure ends the run, before the Job's status reports it.
    let steps = track.see(attempt(3, false, 0, ended(3, 40)), at(40));
    assert_eq!(retries(&steps), []);
}

#[test]
fn the_span_of_a_run_is_that_of_its_pods() {
    let created = json!({"metadata": {"name": "run-main", "labels": {"longshore.dev/role": "main"},
        "creationTimestamp": at(0).to_string()},
        "status": {"completionTime": at(500).to_string()}});
    let job: JobEvidence = serde_json::from_value(created).unwrap();
    let pod = |index: u32, seen: Seen| match seen {
        Seen::Pod(pod) => *pod,
        _ => panic!("{index} is no pod"),
    };
    let pods = [
        pod(0, self::pod("main", 0, ended(0, 7))),
        pod(1, self::pod("main", 1, ended(0, 9))),
    ];
    let all: Vec<_> = pods.iter().collect();
    let roles = [role("main", 2)];
    // The Job controller may have been down when the pods ended.
    assert_eq!(span(&roles, &[&job], &all), (Some(at(0)), Some(at(9))));
    // Only the Job knows about deleted pods.
    assert_eq!(
        span(&roles, &[&job], &all[..1]),
        (Some(at(0)), Some(at(500)))
    );
    assert_eq!(span(&roles, &[&job], &[]), (Some(at(0)), Some(at(500))));
}

#[test]
fn unrelated_pods_are_ignored() {
    let mut track = track(&[role("main", 1)]);
    track.see(pod("main", 7, ended(1, 1)), at(1));
    track.see(pod("other", 0, ended(1, 1)), at(1));
    let blank = evidence::PodEvidence::default();
    assert_eq!(outcome(&track.see(Seen::Pod(Box::new(blank)), at(1))), None);
    assert_eq!(going_on(&track), ["run-main"]);
}

fn cluster(event: Value) -> Seen {
    let event = serde_json::from_value(event).unwrap();
    Seen::Cluster(Box::new(ClusterEvidence {
        events: vec![event],
        ..ClusterEvidence::default()
    }))
}

#[test]
fn causes_from_events_are_reported_and_given_up() {
    let mut track = track(&[role("main", 1)]);
    let state = json!({"waiting": {"reason": "ContainerCreating"}});
    track.see(pod("main", 0, main(state, "Pending")), at(0));
    assert!(!track.needs_cause(at(1)), "it may be about to start");
    assert!(track.needs_cause(at(3)));
    let mount = json!({
        "reason": "FailedMount", "type": "Warning",
        "message": "MountVolume.SetUp failed for volume \"keys\" : secret \"keys\" not found",
        "involvedObject": {"kind": "Pod", "name": "run-main-0-x", "uid": "main-0"},
    });
    let steps = track.see(cluster(mount), at(3));
    assert!(
        matches!(&steps[..], [Step::Waiting(why)] if why.sentence() == "main/0: the Secret \"keys\" is missing"),
        "{steps:?}"
    );
    assert_eq!(outcome(&track.see(Seen::Tick, at(12))), None);
    let steps = track.see(Seen::Tick, at(13));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::NotStarted, 4));
    let known = found.explanation.as_ref().unwrap();
    assert_eq!(known.kind, explain::Cause::MissingSecret);
}

#[test]
fn pods_blocked_by_a_quota_are_reported() {
    let mut track = track(&[role("main", 2)]);
    track.see(pod("main", 0, running()), at(1));
    assert!(track.needs_cause(at(3)), "one pod is missing");
    let quota = json!({
        "reason": "FailedCreate", "type": "Warning",
        "message": "Error creating: pods \"x\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
        "involvedObject": {"kind": "Job", "name": "run-main"},
    });
    let steps = track.see(cluster(quota), at(3));
    assert!(
        matches!(&steps[..], [Step::Waiting(why)] if why.kind == explain::Cause::Quota),
        "{steps:?}"
    );
    assert_eq!(outcome(&track.see(Seen::Tick, at(602))), None);
    let steps = track.see(Seen::Tick, at(603));
    assert!(
        outcome(&steps)
            .unwrap()
            .0
            .reason
            .contains("the quota \"q\"")
    );
}

#[test]
fn the_wait_time_is_kept_when_the_cause_is_reworded() {
    let mut track = track(&[role("main", 1)]);
    let pull = |reason: &str, message: &str| {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        pod("main", 0, main(state, "Pending"))
    };
    track.see(pull("ImagePullBackOff", ""), at(0));
    let steps = track.see(pull("ErrImagePull", "i: not found"), at(20));
    assert!(matches!(&steps[..], [Step::Waiting(_)]), "more is known");
    let steps = track.see(pull("ImagePullBackOff", "Back-off pulling image"), at(40));
    assert!(steps.is_empty(), "less is known");
    let steps = track.see(Seen::Tick, at(60));
    let (found, _) = outcome(&steps).unwrap();
    assert!(found.reason.contains("does not exist"), "{}", found.reason);
}

#[test]
fn a_decision_is_repeated_with_further_facts() {
    let mut track = track(&[role("main", 1)]);
    let steps = track.see(pod("main", 0, ended(143, 1)), at(1));
    let (found, _) = outcome(&steps).unwrap();
    assert!(found.reason.contains("terminated ("));
    let lost = serde_json::from_value(json!({
        "reason": "NodeNotReady", "type": "Warning", "message": "Node is not ready",
        "involvedObject": {"kind": "Pod", "name": "run-main-0-x", "uid": "main-0"},
    }));
    let known = ClusterEvidence {
        events: vec![lost.unwrap()],
        ..ClusterEvidence::default()
    };
    let outcome = track.redecide(known, at(1)).unwrap();
    assert_eq!(outcome.reason, "main/0: its node was lost");
    assert_eq!(outcome.exit_code, 143);
}

#[test]
fn a_suspended_job_is_not_a_problem() {
    let mut track = track(&[role("main", 1)]);
    let mut suspended = changed_job("main", json!({}), json!({}), 0);
    if let Seen::Job(job) = &mut suspended {
        job.spec.suspend = true;
    }
    assert!(track.see(suspended, at(1)).is_empty());
    assert_eq!(outcome(&track.see(Seen::Tick, at(5000))), None);
}

#[test]
fn a_service_role_deleted_by_its_jobset_has_not_failed() {
    let mut track = track(&[role("ps", 1), role("worker", 1)]);
    let removed = json!({
        "metadata": {
            "name": "run-ps-0", "labels": {"longshore.dev/role": "ps"},
            "deletionTimestamp": at(2).to_string(),
            "ownerReferences": [{"kind": "JobSet", "name": "run", "uid": "s", "controller": true}],
        },
        "spec": {"backoffLimit": 0},
        "status": condition("Failed", "BackoffLimitExceeded"),
    });
    let removed = Seen::Job(Box::new(serde_json::from_value(removed).unwrap()));
    track.see(removed, at(2));
    assert_eq!(
        outcome(&track.see(pod("ps", 0, ended(137, 3)), at(3))),
        None
    );
    let steps = track.see(pod("worker", 0, ended(0, 2)), at(9));
    let (outcome, _) = outcome(&steps).unwrap();
    assert_eq!(outcome.ending, Ending::Succeeded);
}
