//! `longshore resolve` for runs and selectors, while pods come and go.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::machine::{Machine, Running, eventually, kill_with, unique_word};

/// A pod that sleeps.
fn sleeper(name: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "train"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "any", "command": ["sleep", "300"]}],
        },
    })
    .to_string()
}

fn start(machine: &Machine, name: &str) {
    let file = format!("{name}.json");
    machine.write(&file, &sleeper(name));
    machine.longshore(&["create", "-f", &file]).expect(0);
}

#[test]
fn resolve_prints_the_spec_of_a_run() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write(
        "longshore.toml",
        "command = [\"sleep\", \"300\"]\n[roles.worker]\ncount = 2\n",
    );
    let name = machine
        .longshore(&["run", "--detach"])
        .expect(0)
        .out
        .trim()
        .to_owned();
    let spec = machine.longshore(&["resolve", &name]).expect(0).json();
    let first = spec["worker"][0].as_str().unwrap();
    assert!(
        first.starts_with(&format!("{name}-worker-0.{name}:")),
        "{spec}"
    );
    let of_one = |format: &str, task: &str| {
        machine.longshore(&["resolve", &name, "--format", format, "--task", task])
    };
    let config = of_one("tf-config", "worker:1").expect(0).json();
    assert_eq!(
        (&config["cluster"], &config["task"]["index"]),
        (&spec, &1.into())
    );
    let torch = of_one("torch", "worker:1").expect(0).out;
    assert!(torch.contains("\nRANK=1\n"), "{torch}");
    let refused = of_one("torch", "worker:2").expect(2);
    assert!(
        refused.err.contains("No task with index 2 in job 'worker'"),
        "{}",
        refused.err
    );

    let selector = format!("worker=longshore.dev/run={name}");
    let arguments = ["resolve", "--job", &selector, "--wait", "worker=2"];
    let spec = machine.longshore(&arguments).expect(0).json();
    assert_eq!(spec["worker"].as_array().unwrap().len(), 2, "{spec}");
    assert!(
        spec["worker"][0].as_str().unwrap().starts_with("127."),
        "{spec}"
    );
    machine.longshore(&["cancel", &name]).expect(0);
}

#[test]
fn a_pod_that_does_not_run_is_reported_with_tensorflows_message() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let done = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "w-0", "labels": {"app": "train"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "any", "command": ["true"]}],
        },
    });
    machine.write("pod.json", &done.to_string());
    machine.longshore(&["create", "-f", "pod.json"]).expect(0);
    machine
        .longshore(&["wait", "pod", "w-0", "--until", "finished"])
        .expect(0);
    let refused = machine
        .longshore(&["resolve", "--job", "worker=app=train"])
        .expect(1);
    assert!(
        refused
            .err
            .contains("Pod \"w-0\" is not running; phase: \"Succeeded\""),
        "{}",
        refused.err
    );
    let words = [
        "resolve",
        "--job",
        "worker=app=train",
        "--not-running",
        "skip",
    ];
    let empty = machine.longshore(&words).expect(0);
    assert_eq!(empty.json(), json!({"worker": []}));
    let warning = "the job worker has no tasks: no running pod of the namespace default matches app=train; pods match in default (1)";
    assert!(empty.err.contains(warning), "{}", empty.err);
    let words = [
        "resolve",
        "--job",
        "worker=app=train",
        "--wait",
        "worker=1",
        "--timeout",
        "0",
    ];
    let missing = machine.longshore(&words).expect(1);
    assert!(
        missing.err.contains("worker: 0 of 1; w-0 is Succeeded"),
        "{}",
        missing.err
    );
}

#[test]
fn every_generation_is_printed_as_workers_come_and_go() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    start(&machine, "w-0");
    let words = [
        "resolve",
        "--job",
        "worker=app=train",
        "--watch",
        "--wait",
        "worker=1",
    ];
    let mut watching = Running::start(machine.command(&words));
    let mut lines = BufReader::new(watching.output()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let size = |generation: &Value| generation["cluster"]["worker"].as_array().unwrap().len();
    let names = |generation: &Value, of: &str| -> Vec<String> {
        let tasks = generation[of].as_array().unwrap().iter();
        tasks
            .map(|task| task["pod"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = next();
    assert_eq!(
        (size(&first), names(&first, "joined")),
        (1, vec!["w-0".to_owned()])
    );
    let mut number = first["generation"].as_u64().unwrap();
    // Each generation is in the order of the pods' numbers, not of their arrival.
    for name in ["w-10", "w-9"] {
        start(&machine, name);
        let generation = next();
        number += 1;
        assert_eq!(generation["generation"], number);
        assert_eq!(names(&generation, "joined"), [name]);
    }
    machine.longshore(&["delete", "pod", "w-0"]).expect(0);
    let smaller = next();
    assert_eq!(smaller["generation"], number + 1);
    assert_eq!(
        (size(&smaller), names(&smaller, "left")),
        (2, vec!["w-0".to_owned()])
    );
    // The process is killed from outside, and the pod does not restart it.
    let word = unique_word();
    let mut mortal: Value = serde_json::from_str(&sleeper("w-7")).unwrap();
    mortal["spec"]["restartPolicy"] = json!("Never");
    mortal["spec"]["containers"][0]["command"] = json!(["sh", "-c", "sleep 300; true", word]);
    machine.write("mortal.json", &mortal.to_string());
    machine
        .longshore(&["create", "-f", "mortal.json"])
        .expect(0);
    let larger = next();
    assert_eq!(
        (size(&larger), names(&larger, "joined")),
        (3, vec!["w-7".to_owned()])
    );
    kill_with(&word);
    let last = next();
    assert_eq!(last["generation"], number + 3);
    assert_eq!(names(&last, "left"), ["w-7"]);
    assert_eq!(last["cluster"], smaller["cluster"]);
    // Without following, the output is the same.
    let words = [
        "resolve",
        "--job",
        "worker=app=train",
        "--not-running",
        "skip",
    ];
    assert_eq!(machine.longshore(&words).expect(0).json(), last["cluster"]);
    watching.signal("INT");
    watching.end().expect(0);
}

#[test]
fn formats_of_one_task_require_the_task() {
    let machine = Machine::new();
    let words = ["resolve", "--job", "worker=app=train", "--format", "torch"];
    let refused = machine.longshore(&words).expect(2);
    assert!(refused.err.contains("--task worker:0"), "{}", refused.err);
    let refused = machine.longshore(&["resolve"]).expect(2);
    assert!(refused.err.contains("--job"), "{}", refused.err);
}

/// In a pod, `resolve` finds the cluster, the namespace and its own task by itself, even
/// next to a pod that has not started.
#[test]
fn a_pod_finds_itself() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let group = "rbac.authorization.k8s.io";
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]});
    let role = json!({"apiGroup": group, "kind": "Role", "name": "pod-reader"});
    let account = json!({"kind": "ServiceAccount", "name": "default"});
    let of_kind = |kind: &str| {
        let metadata = json!({"name": "pod-reader"});
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata})
    };
    let (mut granted, mut bound) = (of_kind("Role"), of_kind("RoleBinding"));
    granted["rules"] = json!([rule]);
    (bound["roleRef"], bound["subjects"]) = (role, json!([account]));
    for object in [granted, bound] {
        machine.write("role.json", &object.to_string());
        machine.longshore(&["create", "-f", "role.json"]).expect(0);
    }
    let mut waiting: Value = serde_json::from_str(&sleeper("w-9")).unwrap();
    waiting["spec"]["schedulerName"] = json!("missing");
    machine.write("pod.json", &waiting.to_string());
    machine.longshore(&["create", "-f", "pod.json"]).expect(0);
    let script = "longshore resolve --job worker=app=train --wait worker=2 --format torch --task self; sleep 300";
    for name in ["w-0", "w-1"] {
        let mut pod: Value = serde_json::from_str(&sleeper(name)).unwrap();
        pod["spec"]["containers"][0]["command"] = json!(["sh", "-c", script]);
        machine.write("pod.json", &pod.to_string());
        machine.longshore(&["create", "-f", "pod.json"]).expect(0);
    }
    let mut said = String::new();
    eventually("the second worker knows its rank", || {
        said = machine.longshore(&["logs", "pod/w-1"]).out;
        said.contains("PET_NODE_RANK")
    });
    assert!(
        said.contains("\nRANK=1\n") && said.contains("WORLD_SIZE=2"),
        "{said}"
    );
    assert!(said.contains("MASTER_ADDR=127."), "{said}");
}

#[test]
fn the_url_of_a_task_and_the_accelerators_of_all() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    start(&machine, "w-0");
    let words = ["resolve", "--job", "worker=app=train", "--wait", "worker=1"];
    let address = machine.longshore(&words).expect(0).json();
    let address = address["worker"][0].as_str().unwrap();
    let print = |more: &[&str]| machine.longshore(&[&words[..3], more].concat());
    let url = print(&["--task", "worker:0", "--master"]).expect(0).out;
    assert_eq!(url, format!("grpc://{address}\n"));
    let url = print(&["--task", "worker:0", "--master=http"])
        .expect(0)
        .out;
    assert_eq!(url, format!("http://{address}\n"));
    let missing = print(&["--task", "worker:7", "--master"]).expect(2);
    assert!(
        missing.err.contains("No task with index 7"),
        "{}",
        missing.err
    );
    print(&["--master"]).expect(2);
    let accelerators = print(&["--accelerators"]).expect(0).json();
    assert_eq!(accelerators[0]["role"], "worker", "{accelerators}");
    assert_eq!(accelerators[0]["resources"], json!({}), "{accelerators}");
}
