//! `why`, and the preflight report of `run`.

use std::{future::Future, time::Duration};

use longshore::{
    Cluster,
    client::Patch,
    launcher::{Event, Follow, FollowOptions, Run, RunName, follow::Ending, runs::RunRole},
};
use serde_json::{Value, json};

use crate::machine::{Answer, Machine, eventually};

/// The name of runs whose status the test writes.
const RUN: &str = "digits-x7k2p";

fn labels() -> Value {
    json!({
        "app.kubernetes.io/managed-by": "longshore",
        "longshore.dev/run": RUN, "longshore.dev/role": "worker",
    })
}

/// A run's Job, whose pods the cluster creates and runs.
fn job(pod: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": format!("{RUN}-worker"), "labels": labels()},
        "spec": {
            "completions": 1, "parallelism": 1, "completionMode": "Indexed", "backoffLimit": 0,
            "template": {"metadata": {"labels": labels()}, "spec": pod},
        },
    })
}

/// A run's Job that no controller manages: the test writes its status.
fn script() -> Value {
    let mut job = job(&json!({
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "trainer:1"}],
    }));
    job["spec"]["managedBy"] = json!("example.com/unmanaged");
    job
}

/// A pod on a node without an agent, with a status as a kubelet writes it.
fn pod(index: u32, status: &Value) -> (Value, Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{RUN}-worker-{index}-abcde"),
            "labels": labels(),
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
        },
        "spec": {
            "nodeName": "ghost", "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "trainer:1"}],
        },
    });
    (pod, json!({ "status": status }))
}

fn terminated(how: &Value) -> Value {
    json!({"phase": "Failed", "containerStatuses": [{
        "name": "main", "image": "trainer:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": how},
    }]})
}

/// A machine with a cluster that stays up.
struct Fixture {
    machine: Machine,
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn new() -> Self {
        let machine = Machine::new();
        machine.longshore(&["up"]).expect(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Self {
            machine,
            runtime: runtime.unwrap(),
        }
    }

    fn with<T, F: Future<Output = T>>(&self, work: impl FnOnce(Cluster) -> F) -> T {
        let path = self.machine.data().join("kubeconfig");
        self.runtime.block_on(async {
            let cluster = Cluster::from_kubeconfig(Some(&path), None).await.unwrap();
            work(cluster).await
        })
    }

    fn create(&self, objects: &[Value]) {
        self.with(async |cluster: Cluster| {
            for object in objects {
                cluster.create(object, Some("default")).await.unwrap();
            }
        });
    }

    /// A run whose status the test writes, with one pod of this status.
    fn scripted(&self, status: &Value) {
        let (pod, status) = pod(0, status);
        self.create(&[script(), pod.clone()]);
        self.with(async |cluster: Cluster| {
            let pods = cluster.pods().in_namespace("default").unwrap();
            let name = pod["metadata"]["name"].as_str().unwrap();
            let patch = Patch::merge(status);
            pods.patch_status(name, &patch).await.unwrap();
        });
    }

    fn why(&self) -> Answer {
        self.machine.longshore(&["why", RUN, "--output", "json"])
    }

    /// Waits until the cause has this kind; returns the answer.
    #[track_caller]
    fn eventually(&self, kind: &str) -> Value {
        let mut last = String::new();
        eventually(kind, || {
            let answer = self.why().expect(0);
            last = answer.out.clone();
            answer.json()["explanation"]["kind"] == kind
        });
        serde_json::from_str(&last).unwrap()
    }
}

/// The name of the latest run.
fn latest(machine: &Machine) -> String {
    let runs = machine
        .longshore(&["runs", "--output", "name"])
        .expect(0)
        .out;
    runs.lines().next().unwrap().to_owned()
}

#[test]
fn an_exit_code_with_the_last_line_of_the_traceback() {
    let fixture = Fixture::new();
    let script =
        "echo 'Traceback (most recent call last):'; echo 'ValueError: no such column'; exit 3";
    let ran = fixture.machine.run_script(script).expect(3);
    let explanation = "main/0: its command ended with exit code 3: ValueError: no such column";
    assert!(ran.err.contains(explanation), "{}", ran.err);
    let run = latest(&fixture.machine);
    let answer = fixture.machine.longshore(&["why", &run]).expect(0);
    assert_eq!(
        answer.out.lines().next().unwrap(),
        format!("{run} failed: {explanation}")
    );
    assert!(
        answer.out.contains(&format!("longshore logs {run}")),
        "{}",
        answer.out
    );
    let json = fixture
        .machine
        .longshore(&["why", &run, "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(json["state"], "failed");
    assert_eq!(json["exitCode"], 3);
    assert_eq!(json["explanation"]["kind"], "exit-code");
    assert_eq!(json["explanation"]["role"], "main");
    assert_eq!(json["explanation"]["index"], 0);
}

#[test]
fn a_finished_run_and_an_active_run() {
    let fixture = Fixture::new();
    fixture.machine.run_script("exit 0").expect(0);
    let run = latest(&fixture.machine);
    let answer = fixture.machine.longshore(&["why", &run]).expect(0);
    assert_eq!(
        answer.out,
        format!("{run} succeeded: all tasks succeeded\n")
    );
    let started = fixture
        .machine
        .longshore(&["run", "--detach", "--name", "long", "--", "sleep", "300"]);
    let run = started.expect(0).out.trim().to_owned();
    eventually("running", || {
        let answer = fixture.machine.longshore(&["why", &run]).expect(0);
        answer.out == format!("{run} running: no problems: main 1 running\n")
    });
    fixture.machine.longshore(&["cancel", &run]).expect(0);
    let answer = fixture.machine.longshore(&["why", &run]).expect(0);
    assert_eq!(
        answer.out,
        format!("{run} cancelled: the run was cancelled\n")
    );
    fixture.machine.longshore(&["why", "no-such-run"]).expect(1);
}

#[test]
fn a_command_that_does_not_exist() {
    let fixture = Fixture::new();
    fixture
        .machine
        .longshore(&["run", "--", "no-such-program"])
        .expect(4);
    let run = latest(&fixture.machine);
    let json = fixture
        .machine
        .longshore(&["why", &run, "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(json["state"], "not-started", "{json}");
    assert_eq!(json["explanation"]["kind"], "command-not-found", "{json}");
}

#[test]
fn gpus_that_no_node_offers() {
    let fixture = Fixture::new();
    let answer = fixture
        .machine
        .longshore(&["run", "--gpu", "1", "--", "true"])
        .expect(4);
    assert!(
        answer.err.contains(
            "main: it fits on no node: it requests 1 of nvidia.com/gpu, and no node has any"
        ),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("hint: add a node"), "{}", answer.err);
    for kind in ["jobs", "secrets"] {
        let left = fixture
            .machine
            .longshore(&["get", kind, "--output", "name"]);
        let left = left.expect(0).out;
        assert!(!left.contains("code"), "nothing is created: {left}");
    }
    fixture.create(&[job(&json!({
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
    }))]);
    let why = fixture.eventually("never-fits");
    assert_eq!(why["state"], "waiting");
    assert_eq!(why["explanation"]["role"], "worker");
}

/// A machine with two GPUs, simulated by the kernel's files about them.
fn two_gpus(root: &std::path::Path) {
    for gpu in 0..2 {
        let folder = root.join(format!("proc/driver/nvidia/gpus/0000:0{gpu}:00.0"));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("Model: NVIDIA H200\nGPU UUID: GPU-{gpu}\nDevice Minor: {gpu}\n");
        std::fs::write(folder.join("information"), text).unwrap();
        let devices = root.join("dev");
        std::fs::create_dir_all(&devices).unwrap();
        std::fs::write(devices.join(format!("nvidia{gpu}")), "").unwrap();
    }
}

#[test]
fn gpus_that_other_runs_use() {
    let machine = Machine::new();
    let root = machine.home().join("machine");
    two_gpus(&root);
    let root = root.to_str().unwrap();
    machine.longshore(&["up", "--device-root", root]).expect(0);
    let script = "echo \"[$CUDA_VISIBLE_DEVICES]\"";
    let run = |gpus: &str| machine.longshore(&["run", "--gpu", gpus, "--", "sh", "-c", script]);
    let both = run("2").expect(0);
    assert!(both.out.contains("[GPU-0,GPU-1]"), "{}", both.out);
    let never = run("3").expect(4);
    let explanation = "it requests 3 of nvidia.com/gpu, and the largest node, longshore, has 2";
    assert!(never.err.contains(explanation), "{}", never.err);

    let detach = |name: &str, gpus: &str, command: &[&str]| {
        let begin = ["run", "--detach", "--name", name, "--gpu", gpus, "--"];
        let answer = machine.longshore(&[&begin[..], command].concat()).expect(0);
        answer.out.trim().to_owned()
    };
    let first = detach("first", "2", &["sleep", "300"]);
    eventually("it runs", || {
        let answer = machine.longshore(&["why", &first]).expect(0);
        answer.out.contains("1 running")
    });
    let second = detach("second", "1", &["true"]);
    let mut said = String::new();
    eventually("it waits for a GPU", || {
        said = machine.longshore(&["why", &second]).expect(0).out;
        said.contains("no node has enough nvidia.com/gpu free")
    });
    machine.longshore(&["cancel", &first]).expect(0);
    eventually("it has its GPU", || {
        let answer = machine.longshore(&["why", &second]).expect(0);
        answer.out == format!("{second} succeeded: all tasks succeeded\n")
    });
}

/// A Job whose pod mounts the Secret `keys`.
fn with_a_secret() -> Value {
    job(&json!({
        "restartPolicy": "Never",
        "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
        "containers": [{
            "name": "main", "image": "i", "command": ["true"],
            "volumeMounts": [{"name": "keys", "mountPath": "/keys"}],
        }],
    }))
}

#[test]
fn missing_secrets() {
    let fixture = Fixture::new();
    fixture.create(&[with_a_secret()]);
    let why = fixture.eventually("missing-secret");
    assert!(
        why["summary"]
            .as_str()
            .unwrap()
            .starts_with("worker/0: the Secret \"keys\" is missing"),
        "{why}"
    );
    fixture
        .machine
        .longshore(&["delete", "job", &format!("{RUN}-worker")])
        .expect(0);
    let none = || {
        let pods = fixture
            .machine
            .longshore(&["get", "pods", "--output", "name"]);
        pods.out.is_empty()
    };
    eventually("deleted", none);
    fixture.create(&[job(&json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "main", "image": "i", "command": ["true"],
            "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}],
        }],
    }))]);
    let why = fixture.eventually("missing-config-map");
    assert_eq!(
        why["explanation"]["evidence"][0],
        "main: CreateContainerConfigError"
    );
}

#[test]
fn blockers_of_a_run_are_reported_at_once() {
    let fixture = Fixture::new();
    fixture
        .machine
        .write("longshore.toml", "service_account = \"trainer\"\n");
    let answer = fixture
        .machine
        .longshore(&["run", "--no-code", "--", "true"])
        .expect(4);
    assert!(
        answer
            .err
            .contains("the ServiceAccount \"trainer\" is missing"),
        "{}",
        answer.err
    );
    // Plain kubectl would use the user's current context.
    let kubeconfig = fixture.machine.data().join("kubeconfig");
    let kubectl = format!("kubectl --kubeconfig {} create", kubeconfig.display());
    assert!(
        answer
            .err
            .contains(&format!("{kubectl} serviceaccount trainer")),
        "{}",
        answer.err
    );
    // Several blockers are reported at once.
    let answer = fixture
        .machine
        .longshore(&["run", "--no-code", "--gpu", "1", "--", "true"])
        .expect(4);
    assert!(
        answer.err.contains("2 problems block the run"),
        "{}",
        answer.err
    );
    assert!(
        answer.err.contains("nvidia.com/gpu") && answer.err.contains("trainer"),
        "{}",
        answer.err
    );
}

#[test]
fn a_missing_namespace() {
    let fixture = Fixture::new();
    let answer = fixture
        .machine
        .longshore(&["run", "--namespace", "team", "--", "true"])
        .expect(4);
    assert!(
        answer.err.contains("has no namespace \"team\""),
        "{}",
        answer.err
    );
    assert!(
        answer.err.contains("create namespace team") && answer.err.contains("kubectl --kubeconfig"),
        "{}",
        answer.err
    );
}

#[test]
fn an_exhausted_quota() {
    let fixture = Fixture::new();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "compute"}, "spec": {"hard": {"requests.cpu": "1"}},
    });
    fixture.create(&[quota]);
    fixture.with(async |cluster: Cluster| {
        let view = cluster.resourcequotas().in_namespace("default").unwrap();
        let status =
            json!({"status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}});
        view.patch_status("compute", &Patch::merge(status))
            .await
            .unwrap();
    });
    let refused = fixture
        .machine
        .longshore(&["run", "--no-code", "--cpu", "2", "--", "true"])
        .expect(4);
    assert!(
        refused.err.contains(
            "the quota \"compute\" allows 1 of requests.cpu in total, and the run needs 2"
        ),
        "{}",
        refused.err
    );
    fixture.create(&[
        script(),
        json!({
            "apiVersion": "v1", "kind": "Event", "type": "Warning",
            "metadata": {"name": "refused"}, "reason": "FailedCreate",
            "message": "Error creating: pods \"x\" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1",
            "involvedObject": {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": format!("{RUN}-worker")},
            "lastTimestamp": "2026-01-05T10:00:00Z",
        }),
    ]);
    let why = fixture.eventually("quota");
    assert_eq!(
        why["summary"],
        "worker: the quota \"compute\" is exceeded: requests.cpu: a task needs 2, 0 of 1 are used"
    );
}

#[test]
fn an_exceeded_deadline() {
    let fixture = Fixture::new();
    let answer = fixture
        .machine
        .longshore(&["run", "--timeout", "1s", "--", "sleep", "300"])
        .expect(1);
    assert!(answer.err.contains("`timeout` of 1 s"), "{}", answer.err);
    let run = latest(&fixture.machine);
    let json = fixture
        .machine
        .longshore(&["why", &run, "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(json["explanation"]["kind"], "deadline", "{json}");
}

#[test]
fn the_backoff_limit_reports_the_first_failure() {
    let fixture = Fixture::new();
    let arguments = ["run", "--retries", "1", "--", "sh", "-c", "exit 9"];
    fixture.machine.longshore(&arguments).expect(9);
    let run = latest(&fixture.machine);
    let json = fixture
        .machine
        .longshore(&["why", &run, "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(json["explanation"]["kind"], "exit-code", "{json}");
    let seen = json["explanation"]["evidence"].as_array().unwrap();
    assert!(
        seen.contains(&json!("Job: MaxFailedIndexesExceeded")),
        "{json}"
    );
}

#[test]
fn statuses_that_a_kubelet_writes() {
    let table = [
        (
            "out-of-memory",
            terminated(&json!({"exitCode": 137, "reason": "OOMKilled"})),
        ),
        (
            "evicted",
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage. "}),
        ),
        (
            "node-lost",
            json!({"phase": "Failed", "reason": "NodeLost", "message": "Node ghost which was running pod x is unresponsive"}),
        ),
        (
            "image-not-found",
            json!({"phase": "Pending", "containerStatuses": [{
                "name": "main", "image": "trainer:1", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ErrImagePull", "message": "docker.io/library/trainer:1: not found"}},
            }]}),
        ),
    ];
    for (kind, status) in table {
        let fixture = Fixture::new();
        fixture.scripted(&status);
        let why = fixture.eventually(kind);
        assert_eq!(why["explanation"]["pod"], format!("{RUN}-worker-0-abcde"));
    }
}

#[test]
fn an_abandoned_run_keeps_its_explanation() {
    let fixture = Fixture::new();
    fixture.create(&[with_a_secret()]);
    let run = Run {
        name: RunName::existing(RUN).unwrap(),
        namespace: "default".into(),
        schedule: None,
        roles: vec![RunRole {
            name: "worker".into(),
            count: 1,
            service: false,
        }],
    };
    let (waits, outcome) = fixture.with(async |cluster: Cluster| {
        let options = FollowOptions {
            start_timeout: Duration::from_secs(3),
            ..FollowOptions::default()
        };
        let mut follow = Follow::start(&cluster, &run, options).await.unwrap();
        let mut waits = Vec::new();
        loop {
            match follow.next().await.unwrap().unwrap() {
                Event::Waiting(why) => waits.push(why.sentence()),
                Event::Finished(outcome) => return (waits, outcome),
                _ => {}
            }
        }
    });
    let explanation = "worker/0: the Secret \"keys\" is missing";
    assert_eq!(
        waits,
        [explanation],
        "the cause is reported while the run waits"
    );
    assert_eq!((outcome.ending, outcome.exit_code), (Ending::NotStarted, 4));
    assert_eq!(outcome.reason, explanation);
    // The pod was deleted with the run; the Job keeps the explanation.
    let none = || {
        let pods = fixture
            .machine
            .longshore(&["get", "pods", "--output", "name"]);
        pods.out.is_empty()
    };
    eventually("the pod is deleted", none);
    let why = fixture.why().expect(0).json();
    assert_eq!(why["state"], "not-started", "{why}");
    assert_eq!(why["summary"], explanation);
    assert_eq!(why["explanation"]["kind"], "missing-secret");
    let runs = fixture.machine.longshore(&["runs"]).expect(0).out;
    assert!(runs.contains("failed"), "{runs}");
}
