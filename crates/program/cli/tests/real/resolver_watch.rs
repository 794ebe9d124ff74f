//! `longshore resolve --watch` within a pod, while the pods of Deployments, of Jobs and of
//! runs come and go.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    generations::{Watch, addresses},
    machine::Running,
    resolver::allow_pods,
    servers::restart_apiserver,
    stage::{Stage, said},
};

/// A pod template whose pods end at once on SIGTERM.
fn sleepers(label: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": label}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
            "name": "main", "image": "python:3-slim", "command": ["sleep", "1000"],
        }]},
    })
}

fn deployment(stage: &Stage, replicas: u32) {
    stage.apply(&json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "train"}},
            "template": sleepers("train"),
        },
    }));
}

fn scale_job(stage: &Stage, job: &str, count: u32) {
    let patch = json!({"spec": {"parallelism": count, "completions": count}}).to_string();
    stage.kubectl(&["patch", "job", job, "--patch", &patch]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn every_pod_of_a_deployment_that_comes_or_goes_is_printed() {
    let stage = Stage::new();
    allow_pods(&stage);
    let mut watch = Watch::start(&stage, "app=train");
    watch.until_size(&stage, 0, "app=train");
    for replicas in [2, 4] {
        deployment(&stage, replicas);
        watch.until_size(&stage, replicas as usize, "app=train");
    }
    let (uid, name) = watch.members.first_key_value().unwrap();
    let (uid, name) = (uid.clone(), name.clone());
    stage.kubectl(&["delete", "pod", &name]);
    let is_replaced = |watch: &Watch| watch.members.len() == 4 && !watch.members.contains_key(&uid);
    watch.until(&stage, "another pod", is_replaced);
    for replicas in [1, 0] {
        deployment(&stage, replicas);
        watch.until_size(&stage, replicas as usize, "app=train");
    }
    assert_eq!((watch.joined, watch.left), (5, 5));
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn an_elastic_indexed_job_is_followed_in_the_order_of_its_indices() {
    let stage = Stage::new();
    allow_pods(&stage);
    let mut watch = Watch::start(&stage, "job-name=elastic");
    let mut template = sleepers("elastic");
    template["spec"]["restartPolicy"] = json!("Never");
    stage.apply(&json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "elastic"},
        "spec": {
            "completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "backoffLimit": 0, "template": template,
        },
    }));
    watch.until_size(&stage, 2, "job-name=elastic");
    for count in [4, 1, 3] {
        scale_job(&stage, "elastic", count);
        watch.until_size(&stage, count as usize, "job-name=elastic");
        let expected: Vec<String> = (0..count)
            .flat_map(|index| {
                let index = format!("batch.kubernetes.io/job-completion-index={index}");
                addresses(&stage, &format!("job-name=elastic,{index}"))
            })
            .collect();
        assert_eq!(watch.addresses, expected);
    }
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_whose_role_is_scaled_is_followed_to_its_end() {
    let stage = Stage::new();
    allow_pods(&stage);
    let script =
        "echo \"$LONGSHORE_INDEX of $LONGSHORE_COUNT\"; until [ -e /tmp/end ]; do sleep 1; done";
    let words = ["--name", "elastic", "--role", "worker=2", "--no-code"];
    let command = stage.run_command(&[&words[..], &["--", "sh", "-c", script]].concat());
    let followed = Running::start(command);
    let names = || stage.about(&["runs", "--output", "name"]).expect(0).out;
    stage.eventually("the run exists", || !names().is_empty());
    let run = names().trim().to_owned();
    let job = format!("{run}-worker");
    let selector = format!("longshore.dev/run={run}");
    let mut watch = Watch::start(&stage, &selector);
    watch.until_size(&stage, 2, &selector);
    for count in [3, 1, 2] {
        scale_job(&stage, &job, count);
        watch.until_size(&stage, count as usize, &selector);
        let spec = stage.about(&["resolve", &run]).expect(0).json();
        let tasks = spec["worker"].as_array().unwrap();
        assert_eq!(tasks.len(), count as usize, "{spec:#}");
        let last = tasks.last().unwrap().as_str().unwrap();
        let name = format!("{job}-{}.{run}:", count - 1);
        assert!(last.starts_with(&name), "{last}");
    }
    for index in 0..2 {
        let task = format!("{run}/worker/{index}");
        let words = ["exec", "--context", "real", "--namespace", &stage.name];
        let command = [&task, "--", "touch", "/tmp/end"];
        stage.longshore(&[&words[..], &command].concat()).expect(0);
    }
    let answer = followed.end().expect(0);
    let count = |line: &str| answer.out.lines().filter(|said| *said == line).count();
    for (line, times) in [
        ("worker/0 | 0 of 2", 1),
        ("worker/1 | 1 of 2", 2),
        ("worker/2 | 2 of 3", 1),
    ] {
        assert_eq!(count(line), times, "{line}\n{}\n{}", answer.out, answer.err);
    }
    watch.until(&stage, "none is left", |watch| watch.members.is_empty());
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_watch_continues_after_a_restart_of_the_api_server() {
    let stage = Stage::new();
    allow_pods(&stage);
    deployment(&stage, 2);
    let mut watch = Watch::start(&stage, "app=train");
    watch.until_size(&stage, 2, "app=train");
    restart_apiserver(&stage, Duration::from_secs(3));
    // Nothing has changed, so nothing is printed. Later changes are printed.
    for replicas in [3, 1] {
        deployment(&stage, replicas);
        watch.until_size(&stage, replicas as usize, "app=train");
    }
    assert_eq!((watch.joined, watch.left), (3, 2));
    let once = "/longshore/bin/longshore resolve --job worker=app=train --not-running skip";
    let words = ["--name", "once", "--service-account", "reader", "--no-code"];
    let answer = stage.run(&[&words[..], &["--", "sh", "-c", once]].concat());
    let found: Value = serde_json::from_str(&said(&answer.expect(0))).unwrap();
    assert_eq!(found["worker"], json!(watch.addresses));
}
