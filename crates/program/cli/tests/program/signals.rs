//! All ways in which a task can end: its program gets SIGTERM, also below a shell, and its grace
//! period.

use std::{fs, path::PathBuf};

use crate::machine::{Answer, Machine, Running, eventually};

/// A program that takes a moment to save its state.
const PROGRAM: &str = r#"
import os, signal, sys, time

def save(*_):
    time.sleep(1.5)
    with open(os.environ["STATE"], "a") as state:
        state.write("saved\n")
    sys.exit(143)

signal.signal(signal.SIGTERM, save)
print("training", flush=True)
time.sleep(300)
"#;
const SETTINGS: &str = "command = \"python3 train.py; echo next\"\n";

struct Task {
    machine: Machine,
    state: PathBuf,
}

impl Task {
    fn new() -> Self {
        let machine = Machine::new();
        machine.write("train.py", PROGRAM);
        machine.write("longshore.toml", SETTINGS);
        machine.longshore(&["up"]).expect(0);
        let state = machine.home().join("state");
        Self { machine, state }
    }

    fn words<'a>(&self, words: &[&'a str], state: &'a str) -> Vec<&'a str> {
        let mut all = words.to_vec();
        all.extend(["--env", state]);
        all
    }

    /// Starts a run in the background, and waits until its tasks run. Returns its name.
    fn start(&self, options: &[&str]) -> String {
        let state = format!("STATE={}", self.state.display());
        let words = self.words(&[&["run", "--detach"], options].concat(), &state);
        let name = self.machine.longshore(&words).expect(0).out;
        let name = name.trim().to_owned();
        eventually("the task runs", || {
            self.machine
                .longshore(&["logs", &name])
                .out
                .contains("training")
        });
        name
    }

    fn follow(&self, verb: &str) -> Running {
        let state = format!("STATE={}", self.state.display());
        let words = self.words(&[verb], &state);
        let mut running = Running::start(self.machine.command(&words));
        running.wait_for_output("training");
        running
    }

    fn pod(&self) -> String {
        let pods = ["get", "pods", "--output", "name"];
        let pods = self.machine.longshore(&pods).expect(0).out;
        pods.trim().rsplit('/').next().unwrap().to_owned()
    }

    /// Waits until the run has another pod, whose program runs.
    fn runs_again(&self, name: &str) {
        eventually("the task runs again", || {
            let log = self.machine.longshore(&["logs", name]).out;
            log.matches("training").count() == 2
        });
    }

    #[track_caller]
    fn saves(&self, times: usize) {
        eventually("the program has saved its state", || {
            let text = fs::read_to_string(&self.state).unwrap_or_default();
            text == "saved\n".repeat(times)
        });
    }
}

#[test]
fn cancelled_and_removed_runs() {
    let task = Task::new();
    let name = task.start(&[]);
    task.machine.longshore(&["cancel", &name]).expect(0);
    task.saves(1);
    let name = task.start(&[]);
    task.machine.longshore(&["rm", "--force", &name]).expect(0);
    task.saves(2);
}

#[test]
fn a_deleted_pod() {
    let task = Task::new();
    task.start(&[]);
    let pod = task.pod();
    task.machine.longshore(&["delete", "pod", &pod]).expect(0);
    task.saves(1);
}

/// The eviction of a pod, for example to drain a node, and its preemption.
#[test]
fn an_evicted_and_a_preempted_pod() {
    let task = Task::new();
    let name = task.start(&["--cpu", "500m", "--retries", "5"]);
    let evict = "
        field() { sed -n \"s/.*$1: *//p\" \"$KUBECONFIG\" | tr -d '\"'; }
        curl --silent --show-error --fail --insecure --output /dev/null \
            --header \"Authorization: Bearer $(field token)\" \
            --header 'Content-Type: application/json' --data \"$EVICTION\" \
            \"$(field server)/api/v1/namespaces/default/pods/$POD/eviction\"";
    let pod = task.pod();
    let eviction = serde_json::json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
    });
    let mut evict = task.machine.shell(evict);
    evict.env("KUBECONFIG", task.machine.data().join("kubeconfig"));
    evict.env("POD", pod).env("EVICTION", eviction.to_string());
    Answer::new(&evict.output().unwrap()).expect(0);
    task.saves(1);
    task.runs_again(&name);

    let class = serde_json::json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 1000,
    });
    task.machine.write("class.json", &class.to_string());
    let create = ["create", "-f", "class.json"];
    task.machine.longshore(&create).expect(0);
    let nodes = ["get", "nodes", "--output", "json"];
    let nodes = task.machine.longshore(&nodes).expect(0).json();
    let cpus = &nodes["items"][0]["status"]["allocatable"]["cpu"];
    let cpus = cpus.as_str().unwrap();
    let preempt = [
        "run",
        "--no-code",
        "--priority-class",
        "high",
        "--cpu",
        cpus,
        "--",
        "true",
    ];
    task.machine.longshore(&preempt).expect(0);
    task.saves(2);
}

#[test]
fn sweeps() {
    let task = Task::new();
    let options = ["--sweep", "a=1,2", "--parallel", "2"];
    let name = task.start(&options);
    eventually("both combinations run", || {
        let log = task.machine.longshore(&["logs", &name]).out;
        log.matches("training").count() == 2
    });
    task.machine.longshore(&["cancel", &name]).expect(0);
    task.saves(2);
}

#[test]
fn time_limits() {
    let task = Task::new();
    task.start(&["--task-timeout", "3s"]);
    task.saves(1);
    task.start(&["--timeout", "3s"]);
    task.saves(2);
}

#[test]
fn an_interrupted_client() {
    let task = Task::new();
    let run = task.follow("run");
    run.signal("INT");
    run.end().expect(130);
    task.saves(1);
}

#[test]
fn a_change_under_dev() {
    let task = Task::new();
    let dev = task.follow("dev");
    task.machine
        .write("train.py", &format!("{PROGRAM}# changed\n"));
    task.saves(1);
    let log = || task.machine.longshore(&["logs", "last"]).out;
    eventually("the command has started again", || {
        log().matches("training").count() == 2
    });
    dev.signal("INT");
    task.saves(2);
    dev.end().expect(130);
}

#[test]
fn the_end_of_the_cluster() {
    let task = Task::new();
    task.machine.write("train.py", &PROGRAM.replace("1.5", "5"));
    task.start(&[]);
    let down = task.machine.longshore(&["down", "--force"]).expect(0);
    assert!(down.err.contains("waiting up to 30s"), "{}", down.err);
    task.saves(1);
}
