//! Disruptions by the node and by the cluster's administrator.

use crate::{
    machine::signal,
    stage::{Stage, said},
};

const NODE: &str = "node1";

/// Reverts a test's changes to the node, however the test ends.
struct Undo<'a>(&'a Stage, &'static [&'static str]);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        let _ = self.0.ask(self.1);
    }
}

fn started(stage: &Stage, words: &[&str]) -> String {
    let run = stage.detach(words);
    stage.eventually("it runs", || stage.phase() == "Running");
    run
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_task_that_fills_its_disk_is_evicted() {
    let stage = Stage::new();
    stage.machine.write(
        "longshore.toml",
        "resources = { ephemeral-storage = \"10Mi\" }\n",
    );
    let fill = "dd if=/dev/zero of=/tmp/full bs=1M count=200; sleep 1000";
    let run = stage.detach(&["--", "sh", "-c", fill]);
    let why = stage.eventually_why(&run, "evicted");
    let cause = why["explanation"]["cause"].as_str().unwrap();
    assert!(cause.contains("storage"), "{why:#}");
    let human = stage.describe();
    assert!(human.contains("Evicted"), "{human}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_drained_node() {
    let stage = Stage::new();
    let _undo = Undo(&stage, &["uncordon", NODE]);
    let followed = crate::machine::Running::start(stage.run_command(&["--", "sleep", "1000"]));
    stage.eventually("it runs", || stage.phase() == "Running");
    let drain = ["drain", NODE, "--force", "--ignore-daemonsets"];
    let only = "--pod-selector=app.kubernetes.io/managed-by=longshore";
    let drain = [
        &drain[..],
        &["--grace-period=1", "--delete-emptydir-data", only],
    ]
    .concat();
    stage.kubectl(&drain);
    let answer = followed.end();
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("drain"), "{}", answer.err);
    // The pod is deleted, and the end of the run is recorded.
    stage.eventually_why("last", "drained");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_cordoned_node_keeps_a_run_waiting() {
    let stage = Stage::new();
    let _undo = Undo(&stage, &["uncordon", NODE]);
    stage.kubectl(&["cordon", NODE]);
    let run = stage.detach(&["--", "true"]);
    let why = stage.eventually_why(&run, "no-nodes");
    let cause = why["explanation"]["cause"].as_str().unwrap();
    assert!(cause.contains("cordoned"), "{why:#}");
    stage.eventually("events", || stage.describe().contains("were unschedulable"));
    stage.kubectl(&["uncordon", NODE]);
    stage.about(&["attach", &run]).expect(0);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pod_of_higher_priority_preempts_the_run() {
    let stage = Stage::new();
    let class = format!("high-{}", stage.name);
    stage.kubectl(&["create", "priorityclass", &class, "--value=1000"]);
    let low = started(
        &stage,
        &["--name", "low", "--cpu", "1500m", "--", "sleep", "1000"],
    );
    let words = [
        "--name",
        "high",
        "--cpu",
        "1500m",
        "--priority-class",
        &class,
    ];
    let high = stage.detach(&[&words[..], &["--", "true"]].concat());
    stage.eventually_why(&low, "preempted");
    stage.eventually_failed(&low);
    stage.about(&["attach", &high]).expect(0);
    stage.kubectl(&["delete", "priorityclass", &class]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_deleted_pod() {
    let stage = Stage::new();
    let run = started(&stage, &["--", "sleep", "1000"]);
    stage.kubectl(&["delete", "pods", "--all", "--grace-period=1"]);
    let why = stage.eventually_why(&run, "deleted");
    assert_ne!(why["state"], "succeeded", "{why:#}");
    stage.eventually_failed(&run);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_task_survives_the_absence_of_its_node() {
    let stage = Stage::new();
    let script = "for i in $(seq 100); do echo $i; sleep 1; done";
    let followed = crate::machine::Running::start(stage.run_command(&["--", "sh", "-c", script]));
    stage.eventually("it runs", || stage.phase() == "Running");
    let kubelet = std::fs::read_to_string(stage.state("kubelet.pid")).unwrap();
    let kubelet = kubelet.trim().parse().unwrap();
    signal(kubelet, "STOP");
    let why = std::panic::catch_unwind(|| stage.eventually_why("last", "node-lost"));
    signal(kubelet, "CONT");
    let why = why.unwrap();
    assert_eq!(why["state"], "running", "{why:#}");
    let answer = followed.end().expect(0);
    let all: String = (1..=100).map(|number| format!("{number}\n")).collect();
    assert_eq!(said(&answer), all, "{}", answer.err);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_taint_that_evicts() {
    let stage = Stage::new();
    let run = started(&stage, &["--", "sleep", "1000"]);
    let _undo = Undo(&stage, &["taint", "nodes", NODE, "maintenance-"]);
    stage.kubectl(&["taint", "nodes", NODE, "maintenance=now:NoExecute"]);
    let why = stage.eventually_why(&run, "taint");
    assert_ne!(why["state"], "succeeded", "{why:#}");
    stage.eventually_failed(&run);
    let refused = stage.run(&["--", "true"]).expect(4);
    assert!(refused.err.contains("maintenance"), "{}", refused.err);
}
