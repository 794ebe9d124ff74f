//! `longshore record` and `longshore replay`.

use std::os::unix::fs::PermissionsExt as _;

use crate::machine::{Machine, Running, eventually};

/// A password in a Secret, which must not be recorded.
const PASSWORD: &str = "hunter2hunter2";

/// Creates a ConfigMap, a Secret and a Deployment, and prints them.
const SCRIPT: &str = "longshore apply -f objects.yaml >/dev/null
longshore get configmaps settings -o yaml
longshore get configmaps settings
longshore get deployments.apps web -o name
longshore wait configmap settings --until ready --timeout 20
longshore label configmap settings tier=front
longshore delete configmap settings";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("script.sh", SCRIPT);
    machine.write(
        "objects.yaml",
        &format!(
            "apiVersion: v1
kind: ConfigMap
metadata: {{name: settings}}
data: {{colour: blue}}
---
apiVersion: v1
kind: Secret
metadata: {{name: login}}
stringData: {{password: {PASSWORD}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: any}}]}}
"
        ),
    );
    machine
}

/// Runs the program with a script as the command, which finds the program itself.
fn with_script(machine: &Machine, arguments: &[&str], script: &str) -> crate::machine::Answer {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_longshore"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command = machine.command(arguments);
    command
        .args(["--", "sh", "-e", "-c", script])
        .env("PATH", path);
    crate::machine::Answer::new(&command.output().unwrap())
}

#[test]
fn a_recorded_program_has_the_same_output_without_a_cluster() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    let recorded = with_script(&machine, &["record", "r.jsonl"], SCRIPT).expect(0);
    assert!(recorded.out.contains("colour: blue"), "{}", recorded.out);
    assert!(recorded.err.contains("recorded "), "{}", recorded.err);
    machine.longshore(&["down"]).expect(0);

    let file = machine.code().join("r.jsonl");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains(PASSWORD) && text.contains("REDACTED"),
        "{text}"
    );
    assert!(!text.to_lowercase().contains("authorization"), "{text}");

    let replayed = with_script(&machine, &["replay", "r.jsonl", "--strict"], SCRIPT).expect(0);
    assert_eq!(replayed.out, recorded.out);
    assert!(machine.pid().is_none(), "a replay must not start a cluster");
}

#[test]
fn a_request_that_was_not_recorded_fails_and_is_listed() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    let get = "longshore get configmaps -l app=web -o name";
    with_script(&machine, &["record", "r.jsonl"], get).expect(0);

    let other = "longshore get configmaps -l app=db -o name || true";
    let answer = with_script(&machine, &["replay", "r.jsonl"], other).expect(1);
    let difference = "its labelSelector is \"app=web\", not \"app=db\"";
    assert!(
        answer.err.contains("not recorded: 1 request"),
        "{}",
        answer.err
    );
    assert_eq!(answer.err.matches(difference).count(), 2, "{}", answer.err);

    let arguments = ["replay", "r.jsonl", "--output", "json"];
    let answer = with_script(&machine, &arguments, other).expect(1);
    let report: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(report["notRecorded"][0]["count"], 1, "{report}");
    assert_eq!(report["served"], 0, "{report}");
    assert!(!report["unused"].as_array().unwrap().is_empty(), "{report}");

    // The exit code of the command is the exit code of the replay.
    with_script(&machine, &["replay", "r.jsonl"], &format!("{get}; exit 7")).expect(7);
    let strict = ["replay", "r.jsonl", "--strict"];
    let answer = with_script(&machine, &strict, "true").expect(1);
    assert!(
        answer.err.contains("recorded, but not made"),
        "{}",
        answer.err
    );
}

#[test]
fn a_killed_recorder_leaves_a_recording() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    let mut recorder = Running::start(machine.command(&["record", "r.jsonl"]));
    let mut out = std::io::BufReader::new(recorder.output());
    let mut kubeconfig = String::new();
    std::io::BufRead::read_line(&mut out, &mut kubeconfig).unwrap();
    let kubeconfig = kubeconfig.trim().to_owned();
    let get = ["get", "configmaps", "-o", "name", "--kubeconfig"];
    let names = machine
        .longshore(&[&get[..], &[&kubeconfig]].concat())
        .expect(0);
    let watching = ["watch", "configmaps", "--kubeconfig", &kubeconfig];
    let watch = Running::start(machine.command(&watching));
    let file = machine.code().join("r.jsonl");
    eventually("the watch is recorded", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.contains("\"stream\":true"))
    });
    recorder.signal("KILL");
    assert_ne!(recorder.end().code, 0);
    drop(watch);
    std::fs::remove_dir_all(std::path::Path::new(&kubeconfig).parent().unwrap()).unwrap();
    let replayed = with_script(
        &machine,
        &["replay", "r.jsonl"],
        "longshore get configmaps -o name",
    );
    assert_eq!(replayed.expect(0).out, names.out);
}

#[test]
fn other_files_are_neither_replaced_nor_replayed() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    let answer = machine
        .longshore(&["record", "objects.yaml", "--", "true"])
        .expect(2);
    assert!(answer.err.contains("is not a recording"), "{}", answer.err);
    let answer = machine
        .longshore(&["replay", "objects.yaml", "--", "true"])
        .expect(2);
    assert!(answer.err.contains("its first line"), "{}", answer.err);
    let answer = machine
        .longshore(&["replay", "none", "--", "true"])
        .expect(1);
    assert!(answer.err.contains("none: "), "{}", answer.err);
    machine
        .longshore(&["record", "r.jsonl", "--", "true"])
        .expect(0);
    let answer = machine
        .longshore(&["replay", "r.jsonl", "--", "no-such-program"])
        .expect(4);
    assert!(answer.err.contains("cannot run"), "{}", answer.err);
    machine
        .longshore(&["record", "r.jsonl", "--body-limit", "17Mi"])
        .expect(2);
}
