//! Outputs of runs: which files are kept at which end, how they are fetched, and when they are
//! removed.

use std::fs;

use crate::machine::{Machine, eventually};

/// Writes two files; with an argument, waits until it is terminated, and writes a third one.
const TRAIN: &str = "mkdir -p out; echo weights > out/model.bin; echo $LONGSHORE_INDEX > m.json\n\
     test -z \"$1\" && exit ${FAIL:-0}\n\
     trap 'echo last > out/last; exit 1' TERM; echo ready\n\
     while true; do sleep 0.05; done\n";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("train.sh", TRAIN);
    machine.write(
        "longshore.toml",
        "name = 'train'\noutputs = ['out/**', '*.json']\n",
    );
    machine.longshore(&["up"]).expect(0);
    machine
}

fn paths(machine: &Machine, run: &str) -> Vec<String> {
    let answer = machine.longshore(&["outputs", run, "--output", "json"]);
    let json = answer.expect(0).json();
    let tasks = json["tasks"].as_array().unwrap();
    let files = tasks.iter().flat_map(|task| {
        let files = task["files"].as_array().unwrap().iter();
        files.map(move |file| {
            format!(
                "{} {}",
                task["task"].as_str().unwrap(),
                file["path"].as_str().unwrap()
            )
        })
    });
    files.collect()
}

#[test]
fn outputs_of_a_failed_run_are_fetched_at_its_end_with_its_exit_code() {
    let machine = machine();
    let run = [
        "run",
        "--env",
        "FAIL=3",
        "--fetch=got",
        "--",
        "sh",
        "train.sh",
    ];
    let answer = machine.longshore(&run).expect(3);
    assert!(
        answer.err.contains("outputs 2 files, 10 B, to got"),
        "{}",
        answer.err
    );
    assert_eq!(
        fs::read_to_string(machine.code().join("got/out/model.bin")).unwrap(),
        "weights\n"
    );
    let again = machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(0);
    assert!(again.err.contains("2 files already there"), "{}", again.err);

    machine.write("got/m.json", "changed");
    let refused = machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(1);
    assert!(
        refused.err.contains("another content: m.json; use --force"),
        "{}",
        refused.err
    );
    machine
        .longshore(&["outputs", "last", "--to", "got", "--force"])
        .expect(0);
    assert_eq!(
        fs::read_to_string(machine.code().join("got/m.json")).unwrap(),
        "0\n"
    );
}

#[test]
fn outputs_of_a_cancelled_run_include_what_it_writes_within_its_grace_period() {
    let machine = machine();
    let run = machine
        .longshore(&["run", "-d", "--", "sh", "train.sh", "wait"])
        .expect(0);
    let run = run.out.trim();
    eventually("the task is ready", || {
        machine.longshore(&["logs", run]).out.contains("ready")
    });
    // Those of a running task are collected on request.
    let answer = machine
        .longshore(&["outputs", run, "--to", "now"])
        .expect(0);
    assert!(
        answer.err.contains("main/0 is still running"),
        "{}",
        answer.err
    );
    assert!(machine.code().join("now/m.json").exists());
    machine.longshore(&["cancel", run]).expect(0);
    eventually("the pod has ended", || {
        paths(&machine, run).contains(&"main/0 out/last".to_owned())
    });
    assert_eq!(
        paths(&machine, run),
        ["main/0 m.json", "main/0 out/last", "main/0 out/model.bin"]
    );
}

#[test]
fn each_task_has_a_folder_and_rm_frees_the_space() {
    let machine = machine();
    machine
        .longshore(&["run", "--role", "worker=2", "--", "sh", "train.sh"])
        .expect(0);
    assert_eq!(
        paths(&machine, "last"),
        [
            "worker/0 m.json",
            "worker/0 out/model.bin",
            "worker/1 m.json",
            "worker/1 out/model.bin"
        ]
    );
    machine
        .longshore(&["outputs", "last", "--to", "got"])
        .expect(0);
    let read = |path: &str| fs::read_to_string(machine.code().join(path)).unwrap();
    assert_eq!(
        (read("got/worker-0/m.json"), read("got/worker-1/m.json")),
        ("0\n".into(), "1\n".into())
    );
    let wrong = machine
        .longshore(&["outputs", "last", "worker/2"])
        .expect(2);
    assert!(wrong.err.contains("worker/2"), "{}", wrong.err);

    let outputs = &machine.status()["code"]["outputs"];
    assert_eq!(
        outputs,
        &serde_json::json!({"runs": 1, "files": 3, "bytes": 12})
    );
    let answer = machine.longshore(&["rm", "last"]).expect(0);
    assert!(
        answer.err.contains("Freed 12 B of outputs."),
        "{}",
        answer.err
    );
    assert_eq!(machine.status()["code"]["outputs"]["bytes"], 0);
}

#[test]
fn a_full_folder_is_reported_and_a_second_fetch_completes() {
    let machine = machine();
    let script = "mkdir out; echo small > out/a; head -c 2000000 /dev/zero > out/b";
    machine
        .longshore(&["run", "--", "sh", "-c", script])
        .expect(0);
    let program = env!("CARGO_BIN_EXE_longshore");
    let limited = format!("ulimit -f 500; exec {program} outputs last --to got");
    let mut limited = machine.shell(&limited);
    let full = crate::machine::Answer::new(&limited.output().unwrap()).expect(1);
    assert!(
        full.err.contains("no space to write got/out/b"),
        "{}",
        full.err
    );
    assert!(full.err.contains("fetch again"), "{}", full.err);
    let names = || {
        let entries = fs::read_dir(machine.code().join("got/out")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["a"]);
    let fetch = ["outputs", "last", "--to", "got"];
    let again = machine.longshore(&fetch).expect(0);
    assert!(again.err.contains("1 file already there"), "{}", again.err);
    assert_eq!(names(), ["a", "b"]);
}

#[test]
fn a_checkpoint_is_put_back_from_kept_outputs_after_a_kill_of_the_cluster() {
    let machine = machine();
    let script = "n=$(cat out/step 2>/dev/null || echo 0); echo begins at $n\n\
                  test $n = 3 && exit 0\nmkdir -p out; echo 3 > out/step.new; mv out/step.new out/step\n\
                  echo ready; sleep 600\n";
    machine.write("step.sh", script);
    let run = machine.longshore(&["run", "-d", "--", "sh", "step.sh"]);
    let run = run.expect(0).out.trim().to_owned();
    eventually("the checkpoint is written", || {
        machine.longshore(&["logs", &run]).out.contains("ready")
    });
    crate::machine::signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has ended", || machine.pid().is_none());
    machine.longshore(&["up"]).expect(0);
    eventually("the files are kept", || {
        machine.longshore(&["outputs", &run, "--to", "."]).code == 0
            && machine.code().join("out/step").exists()
    });
    let next = machine.longshore(&["run", "--", "sh", "step.sh"]).expect(0);
    assert!(next.out.contains("begins at 3"), "{}", next.out);
}

#[test]
fn outputs_survive_the_end_of_the_clusters_process() {
    let machine = machine();
    let run = machine
        .longshore(&["run", "-d", "--", "sh", "train.sh", "wait"])
        .expect(0);
    let run = run.out.trim();
    eventually("the task is ready", || {
        machine.longshore(&["logs", run]).out.contains("ready")
    });
    crate::machine::signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has ended", || machine.pid().is_none());
    machine.longshore(&["up"]).expect(0);
    eventually("the next cluster keeps the files", || {
        machine.longshore(&["outputs", run, "--list"]).code == 0
    });
    assert_eq!(
        paths(&machine, run),
        ["main/0 m.json", "main/0 out/model.bin"]
    );
}

#[test]
fn runs_that_cannot_have_outputs_are_refused_with_a_remedy() {
    let machine = machine();
    let kubeconfig = machine.data().join("kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let other = ["run", "--kubeconfig", kubeconfig, "--", "true"];
    let refused = machine.longshore(&other);
    assert_ne!(refused.code, 0);
    assert!(
        refused
            .err
            .contains("this cluster keeps no files of tasks: set `store`"),
        "{}",
        refused.err
    );
    assert!(
        refused
            .err
            .contains("`outputs_claim` to a PersistentVolumeClaim"),
        "{}",
        refused.err
    );
    let refused = machine
        .longshore(&["run", "--no-code", "--", "true"])
        .expect(2);
    assert!(
        refused.err.contains("remove `--no-code`"),
        "{}",
        refused.err
    );
    machine.write("longshore.toml", "outputs = ['../x']\n");
    let refused = machine.longshore(&["run", "--", "true"]).expect(2);
    assert!(
        refused.err.contains("longshore.toml:1:12: invalid outputs"),
        "{}",
        refused.err
    );
    machine.write("longshore.toml", "");
    let refused = machine
        .longshore(&["run", "--fetch", "--", "true"])
        .expect(2);
    assert!(
        refused.err.contains("the run has no outputs"),
        "{}",
        refused.err
    );
    assert!(
        machine
            .longshore(&["runs", "--output", "name"])
            .expect(0)
            .out
            .is_empty()
    );
}
