//! Commands that messages suggest use the same cluster and namespace as the command that
//! printed them.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::machine::{Answer, Machine, Running, eventually, signal};

/// Options that select the namespace `team` of the cluster.
const TEAM_OPTIONS: [&str; 4] = ["--kubeconfig", "../config", "-n", "team"];

/// A machine whose cluster is selected by options.
fn machine() -> Machine {
    let machine = Machine::new();
    machine
        .longshore(&["up", "--kubeconfig", "../config"])
        .expect(0);
    machine.write(
        "team.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n",
    );
    machine.longshore(&["create", "-f", "team.yaml"]).expect(0);
    machine
}

fn there(verb: &[&str], rest: &[&str]) -> Vec<String> {
    let words = [verb, &TEAM_OPTIONS, rest].concat();
    words.into_iter().map(str::to_owned).collect()
}

#[track_caller]
fn assert_has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "{wanted}\n--- in\n{text}");
}

#[test]
fn hints_reach_the_same_cluster_and_namespace() {
    let machine = machine();
    let answer = machine
        .longshore(&there(&["logs", "nothing"], &[]))
        .expect(1);
    assert!(
        answer
            .err
            .contains("`longshore runs --kubeconfig ../config --namespace team` lists"),
        "{}",
        answer.err
    );
    // Hints omit what the environment sets: the next command reads it as well.
    let answer = machine.longshore(&["logs", "nothing"]).expect(1);
    assert!(
        answer.err.contains("`longshore runs` lists"),
        "{}",
        answer.err
    );
}

/// The last event of a run with JSON output.
fn finished(answer: &Answer) -> Value {
    let last = answer.out.lines().next_back().unwrap();
    serde_json::from_str(last).unwrap()
}

#[test]
fn remedies_in_json_reach_the_same_cluster_and_namespace() {
    let machine = machine();
    let failing = there(&["run", "--output", "json"], &["--", "false"]);
    let ended = finished(&machine.longshore(&failing).expect(1));
    let run = machine
        .longshore(&there(&["runs", "-o", "name"], &[]))
        .expect(0);
    let read = format!(
        "`longshore logs {} --role main --index 0 --kubeconfig ../config --namespace team`",
        run.out.trim()
    );
    assert_has(ended["remedy"].as_str().unwrap(), &read);
    assert_has(ended["explanation"]["remedy"].as_str().unwrap(), &read);
    for format in ["json", "yaml", "text"] {
        let why = there(&["why", "last", "--output", format], &[]);
        let why = machine.longshore(&why).expect(0).out;
        assert_has(&why.replace("\n      ", " "), &read);
    }

    let refused = there(
        &["run", "--output", "json", "--service-account", "trainer"],
        &["--", "true"],
    );
    let ended = finished(&machine.longshore(&refused).expect(4));
    assert_eq!(ended["ending"], "notStarted");
    assert_has(
        ended["remedy"].as_str().unwrap(),
        "`kubectl --kubeconfig ../config --namespace team create serviceaccount trainer`",
    );
}

/// Starts a run and waits until its task runs.
fn follow(machine: &Machine, options: &[&str]) -> Running {
    let words = [
        &["run", "--on-interrupt", "detach"][..],
        options,
        &["--", "sh", "-c", "echo the task runs; sleep 300"],
    ];
    let mut running = Running::start(machine.command(&words.concat()));
    // The task may run before the program follows it.
    running.wait_for_output("the task runs");
    running
}

#[test]
fn the_hint_after_detaching_finds_the_run() {
    let machine = machine();
    let running = follow(&machine, &TEAM_OPTIONS);
    running.signal("INT");
    let left = running.end().expect(130).err;
    let run = machine
        .longshore(&there(&["runs", "-o", "name"], &[]))
        .expect(0);
    let run = run.out.trim();
    assert_has(
        &left,
        &format!(
            "{run} continues: `longshore logs {run} --follow --kubeconfig ../config --namespace team` \
             shows it, `longshore cancel {run} --kubeconfig ../config --namespace team` stops it"
        ),
    );
}

#[test]
fn hints_name_the_folder_of_the_cluster() {
    let machine = Machine::new();
    let folder = ["--data-dir", "../other"];
    let of = |verb: &[&'static str]| [verb, &folder].concat();
    let up = machine.longshore(&of(&["up"])).expect(0);
    assert_has(
        &up.out,
        "Stop it with `longshore down --data-dir ../other`.",
    );
    let mut running = follow(&machine, &folder);
    let status = machine
        .longshore(&of(&["status", "--output", "json"]))
        .json();
    assert_eq!(status["until"], "`longshore down --data-dir ../other`");
    signal(
        i32::try_from(status["pid"].as_i64().unwrap()).unwrap(),
        "KILL",
    );
    eventually("the cluster has died", || {
        machine.longshore(&of(&["status"])).code == 3
    });
    running.wait_for_error("starts it again");
    running.signal("INT");
    let errors = running.end().expect(130).err;
    assert_has(&errors, "stays until `longshore down --data-dir ../other`");
    assert_has(
        &errors,
        "`longshore up --data-dir ../other` starts it again",
    );
}

/// A run whose task waits for a ConfigMap.
const WAITS: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: digits-x7k2p-worker
  labels: &labels
    app.kubernetes.io/managed-by: longshore
    longshore.dev/run: digits-x7k2p
    longshore.dev/role: worker
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  template:
    metadata: {labels: *labels}
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: trainer:1
        command: ["true"]
        envFrom: [{configMapRef: {name: settings}}]
"#;

#[test]
fn the_remedy_creates_the_missing_object_in_the_runs_namespace() {
    let machine = machine();
    machine.write("waits.yaml", WAITS);
    machine
        .longshore(&there(&["create", "-f", "waits.yaml"], &[]))
        .expect(0);
    let attach = |output: &str| {
        let words = there(&["attach", "digits", "--output", output], &[]);
        Running::start(machine.command(&words))
    };
    let (mut text, mut json) = (attach("text"), attach("json"));
    let events = BufReader::new(json.output()).lines().map(|line| {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        event
    });
    let waiting = { events }
        .find(|event| event["event"] == "waiting")
        .unwrap();
    let wanted = "`kubectl --kubeconfig ../config --namespace team create configmap settings …`";
    assert_has(waiting["remedy"].as_str().unwrap(), wanted);
    text.wait_for_error(wanted);
    for follower in [text, json] {
        follower.signal("INT");
        let errors = follower.end().expect(130).err;
        assert_has(&errors, "--namespace team` stops it");
        assert_has(&errors, wanted);
    }
}
