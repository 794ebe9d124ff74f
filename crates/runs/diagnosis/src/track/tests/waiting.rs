//! Waiting tasks, and the time when the run is given up.

use super::*;

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

fn event(event: Value) -> Seen {
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
    let steps = track.see(event(mount), at(3));
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
    let steps = track.see(event(quota), at(3));
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
fn a_suspended_job_is_not_a_problem() {
    let mut track = track(&[role("main", 1)]);
    let mut suspended = changed_job("main", json!({}), json!({}), 0);
    if let Seen::Job(job) = &mut suspended {
        job.spec.suspend = true;
    }
    assert!(track.see(suspended, at(1)).is_empty());
    assert_eq!(outcome(&track.see(Seen::Tick, at(5000))), None);
}
