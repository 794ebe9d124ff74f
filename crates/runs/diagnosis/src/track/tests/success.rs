//! Runs that succeed, and the number of their tasks.

use super::*;

#[test]
fn a_run_goes_from_pending_to_success() {
    let mut track = track(&[role("worker", 2)]);
    let steps = track.see(pod("worker", 0, running()), at(1));
    assert_eq!(counts(&steps), [(1, 1, 0, 0)]);
    assert!(steps.contains(&Step::Read {
        attempt: 1,
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
    assert_eq!(super::outcome(&again), None, "a run is decided once");
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

#[test]
fn pods_deleted_after_their_end_still_count() {
    let mut track = track(&[role("worker", 2)]);
    track.see(pod("worker", 0, ended(0, 1)), at(1));
    track.see(Seen::PodGone("worker-0".into()), at(2));
    let steps = track.see(pod("worker", 1, ended(0, 3)), at(3));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Succeeded);
}

#[test]
fn unrelated_pods_are_ignored() {
    let mut track = track(&[role("main", 1)]);
    track.see(pod("main", 7, ended(1, 1)), at(1));
    track.see(pod("other", 0, ended(1, 1)), at(1));
    let blank = PodFacts::default();
    assert_eq!(outcome(&track.see(Seen::Pod(Box::new(blank)), at(1))), None);
    assert_eq!(going_on(&track), ["run-main"]);
}
