//! Table tests of the decisions of [`super`].
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::job::testing::{at, failed, job, now, pod, running, succeeded};

fn decide_at(job: &Job, pods: &[PodFacts], now: Timestamp) -> Plan {
    let pods: Vec<&PodFacts> = pods.iter().collect();
    let limits = BackoffLimits::default();
    let failures = Failures::default();
    plan(&Observed {
        job,
        pods: &pods,
        failures,
        limits,
        now,
    })
    .unwrap()
}

fn decide(spec: Value, status: Value, pods: &[PodFacts]) -> Plan {
    decide_at(&job(spec, status), pods, now())
}

/// The status after the first reconciliation, with more fields.
fn started(more: Value) -> Value {
    let mut status = json!({"startTime": "2026-01-02T03:04:05Z"});
    status
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    status
}

fn target_of(plan: &Plan) -> Option<(&'static str, String)> {
    target(&plan.status).map(|(kind, reason, _)| (kind, reason))
}

fn indexes(plan: &Plan) -> Vec<u32> {
    plan.create.iter().filter_map(|pod| pod.index).collect()
}

fn deleted(plan: &Plan) -> Vec<(&str, bool)> {
    plan.delete
        .iter()
        .map(|r| (r.pod.name.as_str(), r.uncounted))
        .collect()
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

#[test]
fn a_new_job_creates_its_pods() {
    let table = [
        (json!({}), 1),
        (json!({"parallelism": 3, "completions": 5}), 3),
        (json!({"parallelism": 3, "completions": 2}), 2),
        (json!({"parallelism": 4}), 4),
        (json!({"parallelism": 0, "completions": 2}), 0),
        (json!({"parallelism": 1000, "completions": 1000}), 500),
    ];
    for (spec, count) in table {
        let plan = decide(spec.clone(), json!({}), &[]);
        assert_eq!(plan.create.len(), count, "{spec}");
        assert_eq!(plan.status.start_time, Some(whole_seconds(now())));
        assert_eq!(target_of(&plan), None);
    }
}

#[test]
fn active_pods_are_not_created_again() {
    let pods = [pod("p"), running("q")];
    let plan = decide(
        json!({"parallelism": 3, "completions": 9}),
        started(json!({})),
        &pods,
    );
    assert_eq!(plan.create.len(), 1);
    let status = plan.status;
    assert_eq!(
        (status.active, status.ready, status.terminating),
        (Some(2), Some(1), Some(0))
    );
}

#[test]
fn indexed_jobs_use_the_lowest_free_indexes() {
    let pods = [at(1, running("p"))];
    let spec = json!({"completionMode": "Indexed", "completions": 6, "parallelism": 3});
    let plan = decide(spec, started(json!({"completedIndexes": "0,2"})), &pods);
    assert_eq!(indexes(&plan), [3, 4]);
    assert_eq!(plan.create[0].failures, None);
    assert_eq!(plan.status.succeeded, Some(2));
}

#[test]
fn a_success_is_counted_once_in_three_steps() {
    let spec = json!({"completions": 2, "parallelism": 2});
    let pods = [succeeded("p"), running("q")];
    let first = decide(spec.clone(), started(json!({})), &pods);
    let uncounted = first.status.uncounted_terminated_pods.clone().unwrap();
    assert_eq!(uncounted.succeeded, Some(vec!["p".to_owned()]));
    assert_eq!(first.status.succeeded, None);
    assert_eq!(first.release.len(), 1);
    assert!(first.create.is_empty());

    // Another decision before the finalizer is removed adds nothing.
    let stored = serde_json::to_value(&first.status).unwrap();
    let requeue_after = decide(spec.clone(), stored.clone(), &pods);
    assert_eq!(requeue_after.status, first.status);

    // The pod is counted once its finalizer is removed, whether it still exists or
    // not.
    let mut off = succeeded("p");
    off.tracked = false;
    for pods in [vec![off, running("q")], vec![running("q")]] {
        let counted = decide(spec.clone(), stored.clone(), &pods);
        assert_eq!(counted.status.succeeded, Some(1));
        assert_eq!(
            counted.status.uncounted_terminated_pods,
            Some(Default::default())
        );
        assert!(counted.release.is_empty() && counted.create.is_empty());
    }
}

#[test]
fn a_job_completes_after_all_pods_are_counted_and_deleted() {
    let spec = json!({});
    let met = decide(spec.clone(), started(json!({})), &[succeeded("p")]);
    let reached = (names::SUCCESS_CRITERIA_MET, "CompletionsReached".to_owned());
    assert_eq!(target_of(&met), Some(reached));
    assert!(conditions::finished(&met.status).is_none() && met.notices.is_empty());

    let done = decide(spec, serde_json::to_value(&met.status).unwrap(), &[]);
    assert_eq!(
        conditions::finished(&done.status).unwrap().type_,
        names::COMPLETE
    );
    assert_eq!(done.status.completion_time, Some(whole_seconds(now())));
    assert_eq!((done.status.succeeded, done.status.active), (Some(1), None));
    assert_eq!(done.notices[0].reason, "Completed");
}

#[test]
fn a_job_without_completions_ends_after_one_success_and_all_pods() {
    let spec = json!({"parallelism": 2});
    let pods = [succeeded("p"), running("q")];
    let plan = decide(spec.clone(), started(json!({})), &pods);
    assert!(plan.create.is_empty() && plan.delete.is_empty());
    assert_eq!(target_of(&plan), None);
    let plan = decide(spec, started(json!({})), &[succeeded("p"), succeeded("q")]);
    assert_eq!(target_of(&plan).unwrap().0, names::SUCCESS_CRITERIA_MET);
}

#[test]
fn a_failed_pod_is_replaced_after_the_backoff() {
    let job = job(json!({}), started(json!({})));
    let pods = [failed("p")];
    let plan = decide_at(&job, &pods, now());
    assert!(plan.create.is_empty());
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(10)));
    assert_eq!(plan.failures.count, 1);
    assert_eq!(
        decide_at(&job, &pods, later(4)).requeue_after,
        Some(Duration::from_secs(6))
    );
    assert_eq!(decide_at(&job, &pods, later(10)).create.len(), 1);
}

#[test]
fn a_later_success_resets_the_backoff() {
    let spec = json!({"completions": 3, "parallelism": 3});
    for (seconds, failures, made) in [(1, 0, 2), (-1, 1, 0)] {
        let mut other = succeeded("q");
        other.finished = Some(later(seconds));
        let plan = decide(spec.clone(), started(json!({})), &[failed("p"), other]);
        assert_eq!(
            (plan.failures.count, plan.create.len()),
            (failures, made),
            "{seconds}"
        );
    }
}

#[test]
fn a_job_fails_beyond_the_backoff_limit() {
    let spec = json!({"backoffLimit": 1, "parallelism": 2, "completions": 2});
    let plan = decide(
        spec.clone(),
        started(json!({"failed": 1})),
        &[failed("p"), running("q")],
    );
    let exceeded = (names::FAILURE_TARGET, "BackoffLimitExceeded".to_owned());
    assert_eq!(target_of(&plan), Some(exceeded));
    assert_eq!(deleted(&plan), [("q", false)]);
    assert!(plan.create.is_empty() && plan.notices.is_empty());

    // The other pod is still being deleted. It counts as failed, but the Job has not failed yet.
    let mut terminating = running("q");
    terminating.deleting = true;
    let status = serde_json::to_value(&plan.status).unwrap();
    let plan = decide(spec.clone(), status, &[terminating.clone()]);
    assert!(conditions::finished(&plan.status).is_none());
    assert_eq!(
        (plan.status.failed, plan.status.terminating),
        (Some(2), Some(1))
    );
    terminating.tracked = false;
    let status = serde_json::to_value(&plan.status).unwrap();
    let plan = decide(spec.clone(), status, &[terminating]);
    assert!(conditions::finished(&plan.status).is_none());
    assert_eq!(plan.status.failed, Some(3));

    let plan = decide(spec, serde_json::to_value(&plan.status).unwrap(), &[]);
    let end = conditions::finished(&plan.status).unwrap();
    assert_eq!(
        (end.type_.as_str(), end.reason.as_deref()),
        ("Failed", Some("BackoffLimitExceeded"))
    );
    assert_eq!(plan.status.completion_time, None);
    assert_eq!(plan.notices[0].reason, "BackoffLimitExceeded");
    assert_eq!(plan.notices[0].severity, Severity::Warning);
}

#[test]
fn restarts_count_as_failures_with_restart_policy_on_failure() {
    let template =
        |policy: &str| json!({"spec": {"restartPolicy": policy, "containers": [{"name": "main"}]}});
    for (policy, limit, restarts, ends) in [
        ("OnFailure", 3, 2, false),
        ("OnFailure", 3, 3, true),
        ("OnFailure", 0, 0, false),
        ("OnFailure", 0, 1, true),
        ("Never", 3, 3, false),
    ] {
        let mut pod = running("p");
        pod.restarts = restarts;
        let spec = json!({"backoffLimit": limit, "template": template(policy)});
        let plan = decide(spec, started(json!({})), &[pod]);
        assert_eq!(
            target_of(&plan).is_some(),
            ends,
            "{policy} {limit} {restarts}"
        );
    }
}

#[test]
fn the_failure_policy_fails_the_job_or_ignores_the_failure() {
    let spec = |action: &str| {
        json!({"backoffLimit": 0, "podFailurePolicy": {"rules": [
            {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
        ]}})
    };
    let mut pod = failed("p");
    pod.exits = vec![crate::job::facts::Exit {
        container: "main".into(),
        code: 42,
    }];
    let plan = decide(spec("FailJob"), started(json!({})), &[pod.clone()]);
    assert_eq!(
        target_of(&plan),
        Some((names::FAILURE_TARGET, "PodFailurePolicy".to_owned()))
    );

    let plan = decide(spec("Ignore"), started(json!({})), &[pod.clone()]);
    assert_eq!(target_of(&plan), None);
    assert_eq!(
        (plan.create.len(), plan.release.len(), plan.failures.count),
        (1, 1, 0)
    );
    assert_eq!(
        plan.status.uncounted_terminated_pods,
        Some(Default::default())
    );

    let plan = decide(spec("Count"), started(json!({})), &[pod]);
    assert_eq!(target_of(&plan).unwrap().1, "BackoffLimitExceeded");
}

#[test]
fn pods_in_deletion_are_replaced_at_once_or_after_they_finish() {
    let mut terminating = running("p");
    terminating.deleting = true;
    let plan = decide_at(
        &job(json!({}), started(json!({}))),
        &[terminating.clone()],
        later(60),
    );
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(10)));
    assert_eq!(plan.failures.count, 1);

    let spec = json!({"podReplacementPolicy": "Failed"});
    let plan = decide(spec.clone(), started(json!({})), &[terminating.clone()]);
    assert!(plan.create.is_empty() && plan.release.is_empty());
    assert_eq!(plan.status.terminating, Some(1));
    terminating.lost = true;
    assert_eq!(
        decide(spec, started(json!({})), &[terminating])
            .release
            .len(),
        1
    );
}

#[test]
fn an_index_fails_after_its_own_limit() {
    let spec = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2,
                      "backoffLimitPerIndex": 1});
    // The first failure of index 0: the pod is kept until it is replaced after the
    // backoff.
    let first = [at(0, failed("p")), at(1, running("q"))];
    let job_now = job(spec.clone(), started(json!({})));
    let plan = decide_at(&job_now, &first, now());
    assert!(plan.create.is_empty() && plan.release.is_empty());
    assert_eq!(plan.requeue_after, Some(Duration::from_secs(10)));
    let plan = decide_at(&job_now, &first, later(10));
    assert_eq!(
        plan.create,
        [NewPod {
            index: Some(0),
            failures: Some((1, 0))
        }]
    );

    // The replacement exists, so the first pod is released.
    let mut second = at(0, running("r"));
    second.index_failures = 1;
    let pods = [first[0].clone(), first[1].clone(), second];
    let plan = decide_at(&job_now, &pods, later(11));
    assert_eq!(plan.release.len(), 1);
    assert!(plan.create.is_empty());

    // The replacement also fails: the index has failed, and the Job continues.
    let mut second = at(0, failed("r"));
    second.index_failures = 1;
    let plan = decide(
        spec.clone(),
        started(json!({})),
        &[second, at(1, running("q"))],
    );
    assert_eq!(plan.status.failed_indexes.as_deref(), Some("0"));
    assert_eq!(target_of(&plan), None);
    assert_eq!((plan.create.len(), plan.release.len()), (0, 1));

    // The other index succeeds, and the Job fails.
    let status = serde_json::to_value(&plan.status).unwrap();
    let plan = decide(spec, status, &[at(1, succeeded("q"))]);
    assert_eq!(
        target_of(&plan),
        Some((names::FAILURE_TARGET, "FailedIndexes".to_owned()))
    );
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    let spec = json!({"completionMode": "Indexed", "completions": 5, "parallelism": 5,
                      "backoffLimitPerIndex": 0, "maxFailedIndexes": 1});
    let pods = [at(0, failed("p")), at(1, failed("q")), at(2, running("r"))];
    let plan = decide(spec, started(json!({})), &pods);
    assert_eq!(target_of(&plan).unwrap().1, "MaxFailedIndexesExceeded");
    assert_eq!(plan.status.failed_indexes.as_deref(), Some("0,1"));
    assert_eq!(deleted(&plan), [("r", false)]);
}

#[test]
fn a_success_policy_ends_the_job_early() {
    let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3,
                      "successPolicy": {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]}});
    let pods = [
        at(0, succeeded("p")),
        at(1, running("q")),
        at(2, running("r")),
    ];
    let plan = decide(spec.clone(), started(json!({})), &pods);
    assert_eq!(target_of(&plan).unwrap().1, "SuccessPolicy");
    assert_eq!(plan.delete.len(), 2);
    let others = [at(0, running("p")), at(1, succeeded("q"))];
    assert_eq!(target_of(&decide(spec, started(json!({})), &others)), None);
}

#[test]
fn a_job_can_be_suspended_and_resumed() {
    let plan = decide(json!({"suspend": true}), json!({}), &[]);
    assert_eq!(plan.status.start_time, None);
    assert!(plan.create.is_empty());
    assert_eq!(plan.notices[0].reason, "Suspended");

    let plan = decide(
        json!({"suspend": true}),
        started(json!({})),
        &[running("p")],
    );
    assert_eq!(deleted(&plan), [("p", true)]);
    assert_eq!(plan.status.start_time, None);
    let status = serde_json::to_value(&plan.status).unwrap();
    let resumed = decide_at(&job(json!({}), status), &[], later(30));
    assert_eq!(resumed.status.start_time, Some(whole_seconds(later(30))));
    assert_eq!(resumed.notices[0].reason, "Resumed");
    assert_eq!(resumed.create.len(), 1);
}

#[test]
fn the_deadline_ends_the_job() {
    let job = job(json!({"activeDeadlineSeconds": 60}), started(json!({})));
    let pods = [running("p")];
    let plan = decide_at(&job, &pods, later(20));
    assert_eq!(
        (target_of(&plan), plan.requeue_after),
        (None, Some(Duration::from_secs(40)))
    );
    let plan = decide_at(&job, &pods, later(60));
    assert_eq!(
        target_of(&plan),
        Some((names::FAILURE_TARGET, "DeadlineExceeded".to_owned()))
    );
    assert_eq!(deleted(&plan), [("p", false)]);
}

#[test]
fn surplus_and_duplicate_pods_are_deleted() {
    let spec = json!({"parallelism": 1, "completions": 3});
    let plan = decide(
        spec,
        started(json!({})),
        &[running("p"), pod("q"), running("r")],
    );
    assert_eq!(deleted(&plan), [("q", true), ("p", true)]);
    let spec = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 2});
    let pods = [
        at(0, pod("p")),
        at(0, running("q")),
        at(7, running("r")),
        at(1, pod("s")),
    ];
    let plan = decide(spec, started(json!({})), &pods);
    let mut names: Vec<&str> = deleted(&plan).iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["p", "r"]);
}

#[test]
fn a_job_in_deletion_creates_no_pods() {
    let mut job = job(
        json!({"parallelism": 2, "completions": 2}),
        started(json!({})),
    );
    job.metadata.deletion_timestamp = Some(whole_seconds(now()));
    let plan = decide_at(&job, &[succeeded("p")], now());
    assert!(plan.create.is_empty() && plan.delete.is_empty());
    assert_eq!(plan.release.len(), 1);
}

#[test]
fn a_finished_job_only_releases_pods_and_expires() {
    let status = started(json!({"conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    ]}));
    let spec = json!({"ttlSecondsAfterFinished": 30});
    let left = decide(spec.clone(), status.clone(), &[succeeded("p")]);
    assert_eq!((left.release.len(), left.expire), (1, false));
    assert_eq!(left.requeue_after, Some(Duration::from_secs(30)));
    let job = job(spec, status.clone());
    assert!(decide_at(&job, &[], later(30)).expire);
    assert!(!decide(json!({}), status, &[]).expire);
}
