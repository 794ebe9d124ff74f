//! Finds the failure that caused the end of a run.

use super::*;

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
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!(found.ending, Ending::Succeeded);
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

/// The bootstrap writes its error to the termination message.
#[test]
fn a_missing_command_is_not_an_exit_code_of_the_command() {
    let mut track = track(&[role("main", 1)]);
    let mut status = ended(127, 1);
    status["containerStatuses"][0]["state"]["terminated"]["message"] =
        json!("longshore: command not found: train");
    let steps = track.see(pod("main", 0, status), at(1));
    let (outcome, _) = outcome(&steps).unwrap();
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::NotStarted, 4));
    assert_eq!(
        outcome.reason,
        "main/0: command not found: train (command: train --fast)"
    );
}

/// Readers that do not read the logs report the same end of the run.
#[test]
fn a_log_explains_a_failure_and_does_not_change_the_exit_code() {
    let mut track = track(&[role("main", 1)]);
    let steps = track.see(pod("main", 0, ended(127, 1)), at(1));
    assert_eq!(outcome(&steps).unwrap().0.exit_code, 127);
    let pod = track.pod("main-0").unwrap();
    let ours = track.failed_outcome(pod, 0, Some("longshore: command not found: train"));
    assert_eq!((ours.ending, ours.exit_code), (Ending::Failed, 127));
    assert_eq!(
        ours.reason,
        "main/0: command not found: train (command: train --fast)"
    );
    let own = track.failed_outcome(pod, 0, Some("sh: 1: train: not found"));
    assert_eq!((own.ending, own.exit_code), (Ending::Failed, 127));
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
