//! Runs with `--jobset`.

use serde_json::{Value, json};

use super::{Queue, phases, remove, roles, stays_cancelled};
use crate::stage::Stage;

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_jobset_of_two_roles_succeeds_with_its_workers() {
    let stage = roles();
    let ran = stage.run(&["--jobset"]).expect(0);
    let set = stage.kubectl(&[
        "get",
        "jobsets",
        "--output",
        "jsonpath={.items[0].metadata.name}",
    ]);
    for index in 0..2 {
        let line = format!("worker/{index} | worker/{index} ");
        assert!(ran.out.contains(&line), "{}", ran.out);
    }
    let peer = format!("{set}-worker-0-1.{set}:");
    assert!(ran.out.contains(&peer), "{}", ran.out);
    stage.eventually("the serving role has ended with the set", || {
        !phases(&stage, &set).contains("Running")
    });
    let runs = stage.about(&["runs", "--output", "json"]).expect(0).json();
    assert_eq!(runs[0]["state"], "succeeded", "{runs:#}");
    remove(&stage, &set);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_jobset_fails_with_the_exit_code_of_its_task() {
    let stage = roles();
    let ran = stage.run(&["--jobset", "--env", "CODE=7"]).expect(7);
    assert!(ran.err.contains("exit code 7"), "{}", ran.err);
    stage.eventually("the other roles have ended", || {
        !phases(&stage, "last").contains("Running") && !stage.phase().contains("Running")
    });
    let why = stage.why("last");
    assert_eq!(
        (&why["state"], &why["exitCode"]),
        (&json!("failed"), &json!(7))
    );
    let runs = stage.about(&["runs", "--output", "json"]).expect(0).json();
    remove(&stage, runs[0]["name"].as_str().unwrap());
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_cancelled_jobset_stays_cancelled() {
    let stage = roles();
    let run = stage.detach(&["--jobset", "--", "sleep", "1000"]);
    stage.eventually("it runs", || phases(&stage, &run).contains("Running"));
    stage.about(&["cancel", &run]).expect(0);
    stays_cancelled(&stage, &run);
    remove(&stage, &run);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_webhooks_of_jobset_and_kueue_are_active() {
    let stage = Stage::new();
    let _queue = Queue::new(&stage);
    let job = |name: &str| {
        json!({
            "name": name,
            "template": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}],
            }}}},
        })
    };
    let set = |jobs: Value| {
        json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": "set"}, "spec": {"suspend": true, "replicatedJobs": jobs},
        })
    };
    let apply = |object: Value| {
        stage.machine.write("object.json", &object.to_string());
        let path = stage.machine.code().join("object.json");
        stage.ask(&["apply", "--filename", path.to_str().unwrap()])
    };
    // The webhooks default and validate.
    assert!(apply(set(json!([job("a"), job("a")]))).is_none());
    assert!(apply(set(json!([job("a")]))).is_some());
    let mode = "jsonpath={.spec.replicatedJobs[0].template.spec.completionMode}";
    let mode = stage.kubectl(&["get", "jobset", "set", "--output", mode]);
    assert_eq!(mode, "Indexed");
    // Jobs with a queue are suspended.
    let mut plain = job("plain")["template"].clone();
    plain["apiVersion"] = json!("batch/v1");
    plain["kind"] = json!("Job");
    plain["metadata"] = json!({"name": "plain", "labels": {"kueue.x-k8s.io/queue-name": "none"}});
    assert!(apply(plain).is_some());
    let suspend = "jsonpath={.spec.suspend}";
    let suspend = stage.kubectl(&["get", "job", "plain", "--output", suspend]);
    assert_eq!(suspend, "true");
}
