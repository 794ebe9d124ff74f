//! Runs whose tasks are independent, like the tasks of a sweep.

use super::*;

fn sweep(count: u32, limit: u32, parallelism: u32, status: Value) -> Seen {
    let value = json!({
        "metadata": {"name": "run-main", "labels": {
            "longshore.dev/role": "main", "longshore.dev/sweep": "run",
        }},
        "spec": {
            "completions": count, "parallelism": parallelism,
            "backoffLimit": i32::MAX, "backoffLimitPerIndex": limit,
        },
        "status": status,
    });
    Seen::Job(Box::new(serde_json::from_value(value).unwrap()))
}

fn tracked(count: u32, limit: u32, parallelism: u32) -> Track {
    let mut track = track(&[role("main", count)]);
    track.see(sweep(count, limit, parallelism, json!({})), at(0));
    track
}

fn retries(steps: &[Step]) -> Vec<(u32, u32)> {
    let retries = steps.iter().filter_map(|step| match step {
        Step::Retry(retry) => Some((retry.attempt, retry.attempts)),
        _ => None,
    });
    retries.collect()
}

#[test]
fn a_failed_task_does_not_end_the_others() {
    let mut track = tracked(3, 0, 2);
    track.see(pod("main", 1, ended(3, 1)), at(1));
    let steps = track.see(pod("main", 0, ended(7, 2)), at(2));
    assert_eq!(outcome(&steps), None);
    assert_eq!(retries(&steps), []);
    assert_eq!(counts(&steps), [(1, 0, 0, 2)]);
    let Some(Step::Progress(progress)) = steps.last() else {
        panic!("{steps:?}")
    };
    assert_eq!(progress.to_string(), "main 2/3 done, 2 failed");
    let steps = track.see(pod("main", 2, ended(0, 3)), at(3));
    let (found, _) = outcome(&steps).unwrap();
    assert_eq!((found.ending, found.exit_code), (Ending::Failed, 3));
    assert_eq!(
        found.reason,
        "main/1: its command ended with exit code 3 (and 1 other task)"
    );
    // The Job fails by itself when it has counted the failures, so it is not stopped.
    assert!(track.going_on().is_empty());
}

#[test]
fn a_task_is_retried_as_often_as_its_own_limit_allows() {
    let mut track = tracked(2, 1, 2);
    let steps = track.see(attempt(1, false, 0, ended(1, 2)), at(2));
    assert_eq!(retries(&steps), [(1, 2)]);
    assert_eq!(counts(&steps), []);
    let steps = track.see(attempt(1, false, 1, ended(0, 2)), at(2));
    assert_eq!(outcome(&steps), None);
    let steps = track.see(attempt(2, false, 0, ended(5, 4)), at(4));
    assert_eq!(retries(&steps), []);
    assert_eq!(outcome(&steps).unwrap().0.exit_code, 5);
}

#[test]
fn the_status_of_the_job_counts_for_deleted_pods() {
    let mut track = tracked(3, 0, 3);
    let status = json!({"completedIndexes": "0,2", "failedIndexes": "1"});
    let steps = track.see(sweep(3, 0, 3, status), at(1));
    assert_eq!(
        (counts(&steps), outcome(&steps)),
        (vec![(0, 0, 2, 1)], None)
    );
    let steps = track.see(attempt(1, true, 1, ended(143, 2)), at(2));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Failed);
}

#[test]
fn a_cancelled_sweep_is_not_a_failed_one() {
    let mut track = tracked(3, 0, 1);
    track.see(pod("main", 0, ended(1, 1)), at(1));
    let cancelled = json!({"longshore.dev/cancelled": "2023-11-14T22:13:22Z"});
    let mut seen = sweep(3, 0, 1, json!({}));
    if let Seen::Job(job) = &mut seen {
        job.metadata.annotations = serde_json::from_value(cancelled).unwrap();
    }
    let steps = track.see(seen, at(2));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::Cancelled);
}

#[test]
fn tasks_wait_for_the_resources_of_others_as_long_as_those_run() {
    let unschedulable = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }]});
    let mut track = tracked(2, 0, 2);
    track.see(pod("main", 0, running()), at(1));
    let steps = track.see(pod("main", 1, unschedulable), at(1));
    assert!(!steps.iter().any(|step| matches!(step, Step::Waiting(_))));
    assert_eq!(outcome(&track.see(Seen::Tick, at(5_000))), None);
    track.see(pod("main", 0, ended(0, 5_000)), at(5_000));
    assert_eq!(outcome(&track.see(Seen::Tick, at(5_599))), None);
    let steps = track.see(Seen::Tick, at(5_601));
    assert_eq!(outcome(&steps).unwrap().0.ending, Ending::NotStarted);
}

#[test]
fn tasks_beyond_the_parallelism_do_not_need_a_cause() {
    let mut track = tracked(9, 0, 1);
    track.see(pod("main", 0, ended(0, 1)), at(1));
    track.see(pod("main", 1, running()), at(1));
    assert!(!track.needs_cause(at(60)));
    track.see(pod("main", 1, ended(0, 61)), at(61));
    assert!(track.needs_cause(at(62)), "the next pod does not exist");
}

#[test]
fn a_deadline_after_the_end_of_all_tasks_is_not_the_cause() {
    let late = json!({"conditions": [{
        "type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "",
        "lastTransitionTime": at(20).to_string(),
    }]});
    let ending = |limit: u32| {
        let mut track = tracked(2, limit, 2);
        track.see(pod("main", 0, ended(0, 5)), at(5));
        track.see(pod("main", 1, ended(3, 9)), at(9));
        // Another container in the pod of the failed command runs until the deadline.
        let steps = track.see(sweep(2, limit, 2, late.clone()), at(20));
        let (found, _) = outcome(&steps)?;
        Some(found.exit_code)
    };
    assert_eq!(ending(1), Some(1), "the task waited for its restart");
    let mut done = tracked(2, 0, 2);
    done.see(pod("main", 0, ended(0, 5)), at(5));
    let steps = done.see(pod("main", 1, ended(3, 9)), at(9));
    assert_eq!(outcome(&steps).map(|(found, _)| found.exit_code), Some(3));
    done.reconsider();
    let steps = done.see(sweep(2, 0, 2, late), at(20));
    assert_eq!(outcome(&steps).map(|(found, _)| found.exit_code), Some(3));
}
