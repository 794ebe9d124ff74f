//! Usage of runs, tags, notes and filters.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::machine::{Machine, eventually};

fn machine() -> Machine {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine
}

/// Uses a processor for some seconds, and 30 MB of memory.
const BUSY: &str = "import time\nx = bytearray(30_000_000)\nend = time.time() + 4\nwhile time.time() < end: pass\n";

fn usage(machine: &Machine, run: &str) -> Value {
    let answer = machine.longshore(&["top", run, "--output", "json"]);
    answer.expect(0).json()
}

#[test]
fn a_run_records_what_its_tasks_used() {
    let machine = machine();
    machine.write("busy.py", BUSY);
    let words = ["run", "--cpu", "50m", "--", "python3", "busy.py"];
    let ended = machine.longshore(&words).expect(0);
    assert!(ended.err.contains("usage   mean CPU "), "{}", ended.err);
    let usage = usage(&machine, "last");
    let task = &usage[0]["tasks"][0];
    assert_eq!(task["running"], false);
    assert_eq!(task["requestedCpu"], 0.05);
    assert_eq!(task["recorded"]["gpu"], Value::Null);
    let peak = task["recorded"]["peakMemory"].as_f64().unwrap();
    assert!((30e6..300e6).contains(&peak), "{usage}");
    let mean = task["recorded"]["meanCpu"].as_f64().unwrap();
    assert!((0.05..1.5).contains(&mean), "{usage}");
    let series = task["recorded"]["series"].as_array().unwrap();
    assert!((2..60).contains(&series.len()), "{usage}");
    let table = machine.longshore(&["top", "last"]).expect(0).out;
    assert!(table.contains("main/0  ended"), "{table}");
    // The record is not treated as output of the task.
    let failed = machine.run_script("sleep 2; echo oh >&2; exit 3").expect(3);
    assert!(!failed.err.contains("longshore-usage"), "{}", failed.err);
    let why = machine.longshore(&["why", "last"]).expect(0).out;
    assert!(why.contains("ended with exit code 3"), "{why}");
    assert!(!why.contains("longshore-usage"), "{why}");
}

#[test]
fn tasks_that_run_are_measured() {
    let machine = machine();
    machine.write("busy.py", &BUSY.replace("+ 4", "+ 600"));
    let words = ["run", "--detach", "--", "python3", "busy.py"];
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    eventually("the task has a series", || {
        let usage = usage(&machine, &run);
        let task = &usage[0]["tasks"][0];
        let points = task["recorded"]["series"].as_array();
        points.is_some_and(|points| points.len() > 1)
            && task["cpu"].as_f64().is_some_and(|cpu| cpu > 0.01)
            && task["memory"].as_f64().is_some_and(|memory| memory > 30e6)
    });
    let table = machine.longshore(&["top"]).expect(0).out;
    assert!(table.contains(&run), "{table}");
    assert!(table.contains("running (1 running)"), "{table}");
    machine.longshore(&["cancel", &run]).expect(0);
    let none = machine.longshore(&["top"]).expect(0);
    assert!(none.err.contains("No active runs."), "{}", none.err);
}

#[test]
fn idle_gpus_end_a_run() {
    let machine = machine();
    // The samples show a GPU that is used, and then two idle GPUs.
    let smi = machine.home().join("bin/nvidia-smi");
    fs::create_dir_all(smi.parent().unwrap()).unwrap();
    fs::write(
        &smi,
        "#!/bin/sh\necho '0, GPU-a, 2, 100, 1000'\necho '1, GPU-b, 90, 500, 1000'\n",
    )
    .unwrap();
    fs::set_permissions(&smi, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "PATH={}:{}",
        smi.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let run = |device: &str, script: &str| {
        let device = format!("CUDA_VISIBLE_DEVICES={device}");
        machine.longshore(&[
            "run",
            "--idle-timeout",
            "3s",
            "--retries",
            "2",
            "-e",
            &path,
            "-e",
            &device,
            "--",
            "sh",
            "-c",
            script,
        ])
    };
    // A task that ignores SIGTERM and ends with 0 counts as failed, too.
    let ended = run("0", "trap 'exit 0' TERM; while :; do sleep 0.1; done").expect(123);
    assert!(
        ended.out.contains("the GPUs were idle for"),
        "{}",
        ended.out
    );
    assert!(
        ended.err.contains("its GPUs were idle for"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains("retry"), "{}", ended.err);
    let why = machine
        .longshore(&["why", "last", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(why["explanation"]["kind"], "idle-gpu");
    let gpu = &usage(&machine, "last")[0]["tasks"][0]["recorded"]["gpu"];
    assert_eq!(
        (&gpu["count"], &gpu["meanPercent"]),
        (&1.into(), &2.0.into())
    );
    // The other GPU is used.
    run("1", "sleep 7").expect(0);
    // Without GPUs, the timeout has no effect.
    let none = machine
        .longshore(&["run", "--idle-timeout", "1s", "--", "sleep", "3"])
        .expect(0);
    assert!(
        none.out.contains("idle_timeout has no effect"),
        "{}",
        none.out
    );
}

#[test]
fn tags_notes_and_filters_find_runs() {
    let machine = machine();
    let run = |words: &[&str], code: i32| {
        let script = format!("exit {code}");
        let command = ["--", "sh", "-c", &script];
        let all: Vec<&str> = ["run"]
            .iter()
            .chain(words)
            .chain(&command)
            .copied()
            .collect();
        machine.longshore(&all).expect(code);
    };
    run(
        &[
            "--name",
            "alpha",
            "--tag",
            "lr=0.1",
            "--tag",
            "best",
            "--note",
            "first\nline two",
        ],
        0,
    );
    run(&["--name", "beta", "--tag", "lr=0.2"], 3);
    let names = |words: &[&str]| {
        let all: Vec<&str> = ["runs", "--output", "name"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        let out = machine.longshore(&all).expect(0).out;
        let names = out
            .lines()
            .map(|name| name.rsplit_once('-').unwrap().0.to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["beta", "alpha"]);
    assert_eq!(names(&["--sort", "name"]), ["alpha", "beta"]);
    assert_eq!(names(&["--sort", "name", "--limit", "1"]), ["alpha"]);
    assert_eq!(names(&["--tag", "lr"]), ["beta", "alpha"]);
    assert_eq!(names(&["--tag", "lr=0.2"]), ["beta"]);
    assert_eq!(names(&["--tag", "lr", "--tag", "best"]), ["alpha"]);
    assert_eq!(names(&["--state", "failed"]), ["beta"]);
    assert_eq!(names(&["--state", "finished", "--name", "al*"]), ["alpha"]);
    assert_eq!(names(&["--since", "1h"]), ["beta", "alpha"]);
    assert!(names(&["--state", "active"]).is_empty());
    let wide = machine
        .longshore(&["runs", "--output", "wide"])
        .expect(0)
        .out;
    assert!(
        wide.contains("best,lr=0.1") && wide.contains("first…"),
        "{wide}"
    );

    machine
        .longshore(&["tag", "beta", "lr-", "seed=7"])
        .expect(0);
    assert_eq!(names(&["--tag", "seed"]), ["beta"]);
    assert_eq!(names(&["--tag", "lr"]), ["alpha"]);
    assert_eq!(
        machine.longshore(&["tag", "beta"]).expect(0).out,
        "seed=7\n"
    );
    let note = machine.longshore(&["note", "alpha"]).expect(0).out;
    assert_eq!(note, "first\nline two\n");
    machine
        .longshore(&["note", "alpha", "other\u{1b}[2J"])
        .expect(0);
    let note = machine.longshore(&["note", "alpha"]).expect(0).out;
    assert_eq!(note, "other^[[2J\n");
    machine.longshore(&["note", "alpha", "--remove"]).expect(0);
    let none = machine.longshore(&["note", "alpha"]).expect(0);
    assert!(none.err.contains("has no note"), "{}", none.err);

    for (words, problem) in [
        (&["tag", "alpha", "a/b=1"][..], "without a slash"),
        (&["tag", "alpha", "a=b c"], "value"),
        (&["runs", "--state", "runing"], "use active, finished"),
        (&["runs", "--since", "yesterday"], "use a time such as"),
        (&["runs", "--name", "[a"], "--name"),
        (&["run", "--tag", "a b=1", "--", "true"], "invalid tag"),
        (
            &["run", "--idle-timeout", "x", "--", "true"],
            "idle_timeout",
        ),
    ] {
        let error = machine.longshore(words).expect(2).err;
        assert!(error.contains(problem), "{words:?}: {error}");
    }
}

#[test]
fn two_runs_are_compared() {
    let machine = machine();
    machine.write("train.py", "print('one')\nprint('same')\n");
    machine.write("data.txt", "x\n");
    let run = |words: &[&str]| {
        let command = ["--", "python3", "train.py"];
        let all: Vec<&str> = ["run"]
            .iter()
            .chain(words)
            .chain(&command)
            .copied()
            .collect();
        machine.longshore(&all).expect(0);
    };
    run(&[
        "--name",
        "first",
        "-e",
        "TOKEN=secret-1",
        "-e",
        "LR=1",
        "--memory",
        "64Mi",
    ]);
    machine.write("train.py", "print('two')\nprint('same')\n");
    machine.write("new.txt", "\u{1b}[2Jnew\n");
    run(&[
        "--name",
        "second",
        "-e",
        "TOKEN=secret-2",
        "-e",
        "LR=1",
        "--memory",
        "96Mi",
        "--tag",
        "b",
    ]);
    let text = machine.longshore(&["diff", "first", "last"]).expect(0).out;
    for line in [
        "main: limit memory",
        "64Mi",
        "main: variable TOKEN changed",
        "changed train.py",
        "-print('one')",
        "+print('two')",
        " print('same')",
        "added new.txt",
        "+new",
        "tag b",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for never in ["secret", "LR", "data.txt", "\u{1b}"] {
        assert!(!text.contains(never), "{never}: {text}");
    }
    let brief = machine
        .longshore(&["diff", "first", "last", "--no-code"])
        .expect(0)
        .out;
    assert!(
        brief.contains("changed train.py") && !brief.contains("print"),
        "{brief}"
    );
    let json = machine
        .longshore(&["diff", "first", "first", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(json["sameCode"], true);
    assert_eq!(json["options"], serde_json::json!([]));
    let error = machine.longshore(&["diff", "first", "third"]).expect(1).err;
    assert!(error.contains("third"), "{error}");
}

#[test]
fn a_program_is_notified_of_the_end() {
    let machine = machine();
    let script = machine.home().join("notice.sh");
    let notices = machine.home().join("notices");
    let text = format!(
        "#!/bin/sh\necho \"$LONGSHORE_RUN $LONGSHORE_STATE $LONGSHORE_EXIT_CODE $LONGSHORE_REASON\" >> {}\n",
        notices.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |notify: &str, script: &str| {
        machine.longshore(&[
            "run", "--name", "notice", "--notify", notify, "--", "sh", "-c", script,
        ])
    };
    let script = script.to_str().unwrap();
    run(script, "exit 0").expect(0);
    run(script, "exit 5").expect(5);
    let written = fs::read_to_string(&notices).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), 2, "{written}");
    assert!(
        lines[0].starts_with("notice-") && lines[0].contains(" succeeded 0 "),
        "{written}"
    );
    assert!(lines[1].contains(" failed 5 main/0: "), "{written}");
    let missing = run("/no/such/program", "true").expect(0);
    assert!(
        missing.err.contains("cannot run the notify program"),
        "{}",
        missing.err
    );
    let shell = run("echo done", "true").expect(2);
    assert!(shell.err.contains("no shell reads it"), "{}", shell.err);
}
