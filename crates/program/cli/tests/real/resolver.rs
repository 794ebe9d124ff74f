//! The resolver in pods, with the permissions of a service account.

use serde_json::{Value, json};

use crate::stage::{Stage, said};

/// Lets the namespace's service account `reader` list pods.
pub(crate) fn allow_pods(stage: &Stage) {
    let role = ["create", "role", "reader", "--resource=pods"];
    stage.kubectl(&["create", "serviceaccount", "reader"]);
    stage.kubectl(&[&role[..], &["--verb=get,list,watch"]].concat());
    let account = format!("--serviceaccount={}:reader", stage.name);
    stage.kubectl(&["create", "rolebinding", "reader", "--role=reader", &account]);
}

/// Pods that serve, with the labels that the resolver selects by default.
fn workers(stage: &Stage, count: u32) {
    for index in 0..count {
        stage.apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("worker-{index}"), "labels": {"job-name": "worker"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
                "name": "main", "image": "python:3-slim", "command": ["sleep", "1000"],
            }]},
        }));
    }
    stage.kubectl(&[
        "wait",
        "pods",
        "--all",
        "--for=condition=Ready",
        "--timeout=120s",
    ]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pod_resolves_its_peers_with_its_service_account() {
    let stage = Stage::new();
    allow_pods(&stage);
    workers(&stage, 2);
    let words = ["--service-account", "reader", "--no-code", "--"];
    let resolve = [
        "sh",
        "-c",
        "/longshore/bin/longshore resolve --job worker=job-name=worker",
    ];
    let answer = stage.run(&[&words[..], &resolve].concat()).expect(0);
    let found: Value = serde_json::from_str(&said(&answer)).unwrap();
    let path = "-o=jsonpath={.items[?(@.metadata.labels.job-name=='worker')].status.podIP}";
    let addresses = stage.kubectl(&["get", "pods", path]);
    let mut expected: Vec<String> = addresses
        .split_whitespace()
        .map(|address| format!("{address}:8470"))
        .collect();
    let tasks = found["worker"].as_array();
    let mut tasks: Vec<String> = tasks
        .unwrap_or_else(|| panic!("{found:#}"))
        .iter()
        .map(|task| task.as_str().unwrap().to_owned())
        .collect();
    tasks.sort();
    expected.sort();
    assert_eq!(tasks, expected, "{found:#}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_pod_without_rights_gets_an_error_that_names_them() {
    let stage = Stage::new();
    let words = ["--service-account", "default", "--no-code", "--"];
    let resolve = [
        "sh",
        "-c",
        "/longshore/bin/longshore resolve --job worker=job-name=worker 2>&1; exit 9",
    ];
    let answer = stage.run(&[&words[..], &resolve].concat()).expect(9);
    assert!(answer.out.contains("list pods"), "{}", answer.out);
}
