//! Attempts that a Job replaces.

use super::*;

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
    // The last failure ends the run, before the Job's status reports the failure.
    let steps = track.see(attempt(3, false, 0, ended(3, 40)), at(40));
    assert_eq!(retries(&steps), []);
}

/// A Job with the failure policy of a run, and this restart annotation.
fn policy_job(restart: Option<&str>, limit: u32) -> Seen {
    let disrupted = json!([{"type": "DisruptionTarget", "status": "True"}]);
    let value = json!({
        "metadata": {
            "name": "run-main", "labels": {"longshore.dev/role": "main"},
            "annotations": restart.map(|restart| json!({"longshore.dev/restart": restart})),
        },
        "spec": {
            "backoffLimit": if restart.is_some() { limit } else { 2_147_483_647 },
            "backoffLimitPerIndex": limit, "maxFailedIndexes": 0,
            "podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": disrupted},
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [64]}},
            ]},
        },
    });
    Seen::Job(Box::new(serde_json::from_value(value).unwrap()))
}

fn disrupted(seen: Seen) -> Seen {
    let Seen::Pod(mut pod) = seen else {
        panic!("{seen:?}")
    };
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
    });
    pod.status
        .conditions
        .push(serde_json::from_value(condition).unwrap());
    Seen::Pod(pod)
}

fn consequences(steps: &[Step]) -> Vec<String> {
    let retries = steps.iter().filter_map(|step| match step {
        Step::Retry(retry) => Some(retry.consequence()),
        _ => None,
    });
    retries.collect()
}

#[test]
fn attempts_are_counted_for_each_task_without_disruptions() {
    let mut track = track(&[role("main", 2)]);
    track.see(policy_job(None, 1), at(0));
    let steps = track.see(disrupted(attempt(1, false, 0, ended(143, 2))), at(2));
    assert_eq!(
        consequences(&steps),
        ["does not count as a failure, restarting"]
    );
    let steps = track.see(attempt(2, false, 0, ended(1, 3)), at(3));
    assert_eq!(consequences(&steps), ["attempt 1 of 2, restarting"]);
    let steps = track.see(attempt(2, false, 1, ended(1, 4)), at(4));
    assert_eq!(consequences(&steps), ["attempt 1 of 2, restarting"]);
    // Another failure of the same task ends the run.
    let steps = track.see(attempt(3, false, 0, ended(7, 5)), at(5));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!(found.exit_code, 7);
    let evidence = &found.explanation.as_ref().unwrap().evidence;
    assert!(evidence.contains(&"restarted 1 of 1 times".to_owned()));
}

#[test]
fn restarts_of_the_whole_run_are_counted_over_its_tasks() {
    let mut track = track(&[role("main", 2)]);
    track.see(policy_job(Some("run"), 2), at(0));
    track.see(attempt(1, false, 0, running()), at(1));
    let steps = track.see(attempt(1, false, 1, ended(137, 2)), at(2));
    assert_eq!(
        consequences(&steps),
        ["attempt 1 of 3, restarting all tasks"]
    );
    track.see(attempt(2, false, 1, running()), at(12));
    let steps = track.see(attempt(1, false, 0, ended(1, 13)), at(13));
    assert_eq!(
        consequences(&steps),
        ["attempt 2 of 3, restarting all tasks"]
    );
    assert_eq!(outcome(&steps), None);
}

#[test]
fn a_failure_that_is_seen_after_the_restart_of_its_jobset_is_reported_once() {
    let mut track = track(&[role("main", 2)]);
    let job = |restarts: &str| {
        let job = json!({
            "metadata": {
                "name": "run-main", "uid": restarts,
                "labels": {
                    "longshore.dev/role": "main",
                    "jobset.sigs.k8s.io/restart-attempt": restarts,
                },
                "annotations": {"longshore.dev/max-restarts": "2"},
                "ownerReferences": [{"kind": "JobSet", "name": "run", "uid": "s", "controller": true}],
            },
            "spec": {"backoffLimit": 0, "podFailurePolicy": {"rules": [{
                "action": "FailJob",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            }]}},
        });
        Seen::Job(Box::new(serde_json::from_value(job).unwrap()))
    };
    let pod = |restarts: &str, index: u32, status: Value| {
        let Seen::Pod(mut pod) = attempt(1, true, index, status) else {
            panic!("not a pod")
        };
        let label = "jobset.sigs.k8s.io/restart-attempt".to_owned();
        pod.metadata.labels.insert(label, restarts.to_owned());
        pod.metadata.uid = format!("{restarts}-{index}");
        Seen::Pod(pod)
    };
    track.see(job("0"), at(0));
    track.see(pod("0", 0, running()), at(0));
    track.see(job("1"), at(1));
    // The signal of the restart ended the task.
    let steps = track.see(pod("0", 0, ended(143, 2)), at(2));
    assert_eq!(consequences(&steps), [""; 0]);
    let steps = track.see(pod("0", 1, ended(7, 1)), at(2));
    assert_eq!(
        consequences(&steps),
        ["attempt 1 of 3, restarting all tasks"]
    );
    let steps = track.see(pod("0", 1, ended(7, 1)), at(3));
    assert_eq!(consequences(&steps), [""; 0]);
    track.see(job("2"), at(4));
    // The task was disrupted, and its program handled the signal.
    let steps = track.see(disrupted(pod("1", 0, ended(1, 3))), at(4));
    assert_eq!(consequences(&steps), [""; 0]);
    let mut out_of_memory = ended(137, 3);
    out_of_memory["containerStatuses"][0]["state"]["terminated"]["reason"] = json!("OOMKilled");
    let steps = track.see(pod("1", 1, out_of_memory), at(4));
    assert_eq!(
        consequences(&steps),
        ["attempt 2 of 3, restarting all tasks"]
    );
    // Restarts after disruptions do not count, so there may be more than the limit.
    track.see(job("3"), at(5));
    let steps = track.see(pod("2", 1, ended(9, 4)), at(5));
    assert_eq!(consequences(&steps), [""; 0]);
}

#[test]
fn an_exit_code_that_is_not_retried_is_no_retry() {
    let mut track = track(&[role("main", 1)]);
    track.see(policy_job(None, 3), at(0));
    let steps = track.see(attempt(1, false, 0, ended(64, 2)), at(2));
    assert_eq!(consequences(&steps), [""; 0]);
}

#[test]
fn attempts_whose_pods_were_deleted_before_they_were_seen_are_reported_once() {
    let mut track = Track::new(Vec::new(), Duration::from_secs(600), Timestamp::UNIX_EPOCH);
    let mut unread = |uid: &str, index: &str, counts: Value, labels: Value| {
        let mut annotations = json!({"batch.kubernetes.io/job-completion-index": index});
        for (key, value) in counts.as_object().unwrap() {
            annotations[key] = value.clone();
        }
        let mut all = json!({"longshore.dev/role": "worker"});
        for (key, value) in labels.as_object().unwrap() {
            all[key] = value.clone();
        }
        let pod = json!({"metadata": {
            "name": uid, "uid": uid, "annotations": annotations, "labels": all,
        }});
        let pod: PodFacts = serde_json::from_value(pod).unwrap();
        let steps = track.record(Seen::Pod(Box::new(pod)), Timestamp::UNIX_EPOCH);
        let attempt = |step: &Step| match step {
            Step::Unread { attempt, .. } => Some(*attempt),
            _ => None,
        };
        steps.iter().filter_map(attempt).collect::<Vec<u32>>()
    };
    let failures = |failed: &str, ignored: &str| {
        json!({
            "batch.kubernetes.io/job-index-failure-count": failed,
            "batch.kubernetes.io/job-index-ignored-failure-count": ignored,
        })
    };
    let restarts = |count: &str| json!({"jobset.sigs.k8s.io/restart-attempt": count});
    assert_eq!(unread("a", "0", failures("0", "0"), json!({})), [0; 0]);
    assert_eq!(unread("b", "0", failures("1", "0"), json!({})), [0; 0]);
    assert_eq!(unread("c", "0", failures("2", "2"), json!({})), [3, 4]);
    assert_eq!(unread("c", "0", failures("2", "2"), json!({})), [0; 0]);
    // Each task has its own attempts.
    assert_eq!(unread("d", "1", json!({}), restarts("1")), [1]);
    assert_eq!(unread("e", "1", json!({}), restarts("2")), [0; 0]);
    // Impossible counts are limited.
    let count = unread("f", "2", failures("4294967295", "9"), json!({})).len();
    assert_eq!(count, 100);
}
