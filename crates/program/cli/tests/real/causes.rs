//! Causes that block or end a run, other than its images and its node.

use serde_json::json;

use crate::stage::Stage;

/// Runs until the end; returns the output of `why`, with which `kubectl describe` agrees.
#[track_caller]
fn why_after_end(stage: &Stage, words: &[&str], kind: &str, described: &str) -> serde_json::Value {
    let run = stage.detach(words);
    let why = stage.eventually_why(&run, kind);
    stage.eventually_failed(&run);
    stage.eventually(described, || stage.describe().contains(described));
    why
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_command_out_of_memory_is_killed() {
    let stage = Stage::new();
    let script = "x = b'x' * (500 << 20)";
    let words = ["--memory", "64Mi", "--", "python3", "-c", script];
    let why = why_after_end(&stage, &words, "out-of-memory", "OOMKilled");
    assert_eq!(why["exitCode"], 137, "{why:#}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_child_process_out_of_memory_is_killed() {
    let stage = Stage::new();
    let script = "python3 -c \"x = b'x' * (500 << 20)\"; exit 7";
    let words = ["--memory", "64Mi", "--", "sh", "-c", script];
    let run = stage.detach(&words);
    stage.eventually_failed(&run);
    let why = stage.why(&run);
    let kind = why["explanation"]["kind"].as_str().unwrap();
    // Depending on the cgroup version, containerd reports an OOM kill in the container or
    // not. Both causes are true of this command.
    assert!(["out-of-memory", "exit-code"].contains(&kind), "{why:#}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_command_that_is_not_in_the_image() {
    let stage = Stage::new();
    why_after_end(
        &stage,
        &["--", "no-such-program"],
        "command-not-found",
        "127",
    );
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_that_exceeds_its_deadline() {
    let stage = Stage::new();
    let words = ["--timeout", "5s", "--", "sleep", "1000"];
    why_after_end(&stage, &words, "deadline", "DeadlineExceeded");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_init_container_that_fails() {
    let stage = Stage::new();
    let template = "spec:\n  initContainers:\n  - name: prepare\n    image: python:3-slim\n    \
                    command: [sh, -c, 'echo no data; exit 3']\n";
    stage.machine.write("pod.yaml", template);
    let words = ["--template", "pod.yaml", "--", "true"];
    let why = why_after_end(&stage, &words, "init-failed", "Exit Code:    3");
    let cause = why["explanation"]["cause"].as_str().unwrap();
    assert!(cause.contains("prepare"), "{why:#}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_volume_that_cannot_be_mounted() {
    let stage = Stage::new();
    let template = "spec:\n  containers:\n  - name: main\n    volumeMounts:\n    \
                    - {name: data, mountPath: /data}\n  volumes:\n  - name: data\n    \
                    hostPath: {path: /no/such/folder, type: Directory}\n";
    stage.machine.write("pod.yaml", template);
    let run = stage.detach(&["--template", "pod.yaml", "--", "true"]);
    let why = stage.eventually_why(&run, "mount");
    assert_eq!(why["state"], "waiting", "{why:#}");
    stage.eventually("events", || stage.describe().contains("FailedMount"));
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_secret_that_is_deleted_while_the_pod_starts() {
    let stage = Stage::new();
    let template = "spec:\n  containers:\n  - name: main\n    envFrom:\n    \
                    - secretRef: {name: keys}\n";
    stage.machine.write("pod.yaml", template);
    let words = ["--template", "pod.yaml", "--", "true"];
    // Preflight checks the Secret before anything is created.
    let refused = stage.run(&words).expect(4);
    assert!(refused.err.contains("keys"), "{}", refused.err);
    stage.kubectl(&["create", "secret", "generic", "keys"]);
    stage.run(&words).expect(0);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pod_that_waits_for_room_on_the_node() {
    let stage = Stage::new();
    let first = stage.detach(&["--name", "first", "--cpu", "1500m", "--", "sleep", "1000"]);
    stage.eventually("it runs", || stage.phase() == "Running");
    let second = stage.detach(&["--name", "second", "--cpu", "1500m", "--", "true"]);
    let why = stage.eventually_why(&second, "insufficient-resource");
    assert_eq!(why["state"], "waiting", "{why:#}");
    stage.eventually("events", || stage.describe().contains("Insufficient cpu"));
    stage.about(&["cancel", &first]).expect(0);
    stage.about(&["attach", &second]).expect(0);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pod_that_fits_no_node_is_rejected() {
    let stage = Stage::new();
    let refused = stage.run(&["--cpu", "1000", "--", "true"]).expect(4);
    assert!(refused.err.contains("1k of cpu"), "{}", refused.err);
    let refused = stage.run(&["--node-selector", "pool=none", "--", "true"]);
    let refused = refused.expect(4);
    assert!(refused.err.contains("pool=none"), "{}", refused.err);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn quotas_and_limits_are_reported_before_and_during_a_run() {
    let stage = Stage::new();
    let quota = ["create", "quota", "few", "--hard=pods=1,requests.cpu=500m"];
    stage.kubectl(&quota);
    // The quota requires requests of every container.
    let refused = stage.run(&["--", "true"]).expect(4);
    assert!(refused.err.contains("few"), "{}", refused.err);
    let refused = stage.run(&["--cpu", "2", "--", "true"]).expect(4);
    assert!(refused.err.contains("few"), "{}", refused.err);
    stage.run(&["--cpu", "100m", "--", "true"]).expect(0);
    let long = stage.detach(&["--cpu", "100m", "--", "sleep", "1000"]);
    stage.eventually("it runs", || stage.phase().contains("Running"));
    let waits = stage.detach(&["--name", "waits", "--cpu", "100m", "--", "true"]);
    let why = stage.eventually_why(&waits, "quota");
    assert_eq!(why["state"], "waiting", "{why:#}");
    stage.about(&["cancel", &long]).expect(0);

    let stage = Stage::new();
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": "128Mi"}}]},
    }));
    let refused = stage.run(&["--memory", "1Gi", "--", "true"]).expect(4);
    assert!(refused.err.contains("small"), "{}", refused.err);
    stage.run(&["--memory", "100Mi", "--", "true"]).expect(0);
}
