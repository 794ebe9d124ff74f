//! Tests of the choice of logs.
#![allow(clippy::unwrap_used)]

use longshore_diagnosis::{evidence::JobEvidence, names, role::RunRole};
use longshore_model::facts::PodFacts;
use serde_json::{Value, json};

use super::{Evidence, KeptLogs, MissingReason, RunLogs, choose};
use crate::{names::RunName, run::Run};

fn run(count: u32) -> Run {
    Run {
        name: RunName::existing("digits-x7k2p").unwrap(),
        namespace: "default".to_owned(),
        roles: vec![RunRole {
            name: "worker".to_owned(),
            count,
            service: false,
        }],
        schedule: None,
    }
}

fn job(status: Value) -> JobEvidence {
    let metadata = json!({
        "name": "digits-x7k2p-worker", "uid": "job", "labels": {names::ROLE: "worker"},
    });
    serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
}

/// The metadata of a pod; `second` is its time of creation.
fn metadata(uid: &str, index: u32, second: u32, failures: u32) -> Value {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": "digits-x7k2p-worker", "uid": "job",
        "controller": true,
    });
    json!({
        "name": format!("pod-{uid}"), "namespace": "default", "uid": uid,
        "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        "labels": {names::RUN: "digits-x7k2p", names::ROLE: "worker"},
        "annotations": {
            "batch.kubernetes.io/job-completion-index": index.to_string(),
            names::FAILURES: failures.to_string(),
        },
        "ownerReferences": [job],
    })
}

fn pod(uid: &str, index: u32, second: u32, failures: u32) -> PodFacts {
    serde_json::from_value(json!({"metadata": metadata(uid, index, second, failures)})).unwrap()
}

fn kept(uid: &str, index: u32, second: u32, change: impl FnOnce(&mut Value)) -> KeptLogs {
    let mut kept = json!({
        "metadata": metadata(uid, index, second, 0),
        "owner": {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job"},
        "deleted": "2026-01-01T01:00:00Z",
        "containers": [{"name": "main", "instances": [{"restart": 0, "isCut": false}]}],
    });
    change(&mut kept);
    serde_json::from_value(kept).unwrap()
}

fn chosen(
    run: &Run,
    pods: &[PodFacts],
    job: JobEvidence,
    kept: Option<&[KeptLogs]>,
    is_over: bool,
) -> RunLogs {
    choose(Evidence {
        run,
        pods,
        jobs: &[job],
        kept,
        is_over,
    })
}

fn uids(logs: &RunLogs) -> Vec<&str> {
    logs.logs.iter().map(|log| log.uid.as_str()).collect()
}

fn messages(logs: &RunLogs) -> Vec<String> {
    logs.missing.iter().map(ToString::to_string).collect()
}

#[test]
fn logs_of_deleted_pods_are_in_the_order_of_the_attempts() {
    let (run, job) = (run(2), job(json!({})));
    let pods = [pod("c", 0, 30, 1), pod("a", 1, 5, 0)];
    let same = |_: &mut Value| ();
    let all = [
        kept("b", 0, 20, same),
        kept("c", 0, 30, same),
        kept("d", 0, 40, same),
        kept("a", 1, 5, same),
    ];
    let found = chosen(&run, &pods, job, Some(&all), true);
    assert_eq!(uids(&found), ["b", "c", "d", "a"]);
    let deleted: Vec<bool> = found.logs.iter().map(|log| log.is_deleted).collect();
    assert_eq!(deleted, [true, false, true, false]);
    assert_eq!(messages(&found), [""; 0]);
}

#[test]
fn the_log_of_a_pod_that_was_created_after_the_pods_were_listed_is_not_of_a_deleted_pod() {
    let mut new = kept("a", 0, 1, |_| ());
    new.is_present = true;
    let found = chosen(&run(1), &[], job(json!({})), Some(&[new]), false);
    assert_eq!((uids(&found).len(), messages(&found).len()), (0, 0));
}

#[test]
fn logs_of_a_removed_run_of_the_same_name_are_not_mixed_in() {
    let other = kept("a", 0, 1, |kept| kept["owner"]["uid"] = json!("other"));
    let found = chosen(&run(1), &[], job(json!({})), Some(&[other]), true);
    assert_eq!(uids(&found), [""; 0]);
    // The Jobs of a JobSet change, but their owner does not.
    let set = kept("a", 0, 1, |kept| kept["owner"]["uid"] = json!("set"));
    let mut of_set = job(json!({}));
    let owner = json!({"kind": "JobSet", "name": "s", "uid": "set", "controller": true});
    of_set.metadata.owner_references = vec![serde_json::from_value(owner).unwrap()];
    let found = chosen(&run(1), &[], of_set, Some(&[set]), true);
    assert_eq!(uids(&found), ["a"]);
}

#[test]
fn missing_logs_are_named_per_task() {
    let run = run(4);
    let status = json!({"completedIndexes": "0", "failedIndexes": "1"});
    let pods = [pod("d", 3, 1, 0)];
    let found = chosen(&run, &pods, job(status.clone()), None, true);
    let gone = "its pod was deleted, and its log with it";
    let expected = [
        format!("the log of worker/0 is gone: {gone}"),
        format!("the log of worker/1 is gone: {gone}"),
        "the log of worker/2 is gone: its pod was deleted, or the task did not start".to_owned(),
    ];
    assert_eq!(messages(&found), expected);
    assert!(found.missing.iter().all(super::MissingLog::is_loss));
    // While the run is active, a task without a pod starts later, unless it has ended.
    let found = chosen(&run, &pods, job(status), None, false);
    assert_eq!(messages(&found), expected[..2]);
}

#[test]
fn on_a_cluster_that_keeps_logs_a_task_without_a_log_did_not_start() {
    let found = chosen(&run(1), &[], job(json!({})), Some(&[]), true);
    assert_eq!(messages(&found), ["worker/0 has no log: it did not start"]);
    assert!(!found.missing[0].is_loss());
    // The log of the task was lost.
    let complete = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let found = chosen(&run(1), &[], job(complete), Some(&[]), true);
    assert_eq!(found.missing[0].reason, MissingReason::PodDeleted);
}

#[test]
fn earlier_attempts_without_a_pod_are_missing() {
    let pods = [pod("a", 0, 1, 0), pod("c", 0, 30, 3)];
    let found = chosen(&run(1), &pods, job(json!({})), None, false);
    let attempts: Vec<_> = found
        .missing
        .iter()
        .map(|missing| missing.attempt)
        .collect();
    assert_eq!(attempts, [Some(2), Some(3)]);
    assert!(messages(&found)[0].starts_with("the log of attempt 2 of worker/0 is gone"));
    let hostile = [pod("a", 0, 1, u32::MAX)];
    let found = chosen(&run(1), &hostile, job(json!({})), None, false);
    assert_eq!(found.missing.len(), 100);
}

#[test]
fn logs_that_the_cluster_has_removed_or_cut_say_so() {
    let removed = kept("a", 0, 1, |kept| {
        kept["removed"] = json!("the disk is full");
        kept["containers"] = json!([]);
    });
    let cut = kept("b", 1, 1, |kept| {
        kept["containers"][0]["instances"][0]["isCut"] = json!(true);
    });
    let found = chosen(&run(2), &[], job(json!({})), Some(&[removed, cut]), true);
    let expected = ["the log of attempt 1 of worker/0 is gone: the disk is full"];
    assert_eq!(messages(&found), expected);
    assert!(found.logs[0].is_cut);
}

#[test]
fn without_a_log_of_the_command_that_of_its_init_container_is_read() {
    let init = |kept: &mut Value| kept["containers"][0]["name"] = json!(names::FETCH);
    let found = chosen(
        &run(1),
        &[],
        job(json!({})),
        Some(&[kept("a", 0, 1, init)]),
        true,
    );
    assert_eq!(found.logs[0].container, names::FETCH);
    assert!(!found.logs[0].is_main);
}
