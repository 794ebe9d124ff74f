//! Sweeps: their combinations, the environment of their tasks, their table, and retries.

use std::fs;

use serde_json::{Value, json};

use crate::machine::{Answer, Machine, eventually};

/// Writes its parameter as metrics; fails for 2, unless the file `fixed` in the first argument's
/// folder exists.
const TRAIN: &str = "n=$LONGSHORE_PARAM_N\n\
     echo \"loss=$n.5 argument $2 of $LONGSHORE_COUNT\"\n\
     echo \"{\\\"acc\\\": 9}\" > $LONGSHORE_METRICS\n\
     echo \"{\\\"acc\\\": 0.$n, \\\"index\\\": $LONGSHORE_COMBINATION}\" >> $LONGSHORE_METRICS\n\
     test $n != 2 || test -e $1/fixed || exit 7\n";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("train.sh", TRAIN);
    machine.write("longshore.toml", "name = 'train'\nmetrics = ['loss']\n");
    machine.longshore(&["up"]).expect(0);
    machine
}

/// Runs the command for 1, 2 and 3.
fn run(machine: &Machine) -> Answer {
    let folder = machine.home().to_str().unwrap();
    let words = [
        "run",
        "--sweep",
        "n=1..3",
        "--parallel",
        "2",
        "--",
        "sh",
        "train.sh",
        folder,
        "<{n}>",
    ];
    machine.longshore(&words)
}

fn table(machine: &Machine, run: &str) -> Value {
    let words = ["sweep", run, "--output", "json"];
    machine.longshore(&words).expect(0).json()
}

/// The state and the run of each combination.
fn states(table: &Value) -> Vec<(String, String)> {
    let rows = table["combinations"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (text(&row["state"]), text(&row["run"])))
        .collect()
}

/// The table without the times.
fn without_times(table: &str) -> String {
    let lines = table.lines().map(|line| {
        let words = line.split_whitespace().map(|word| {
            let is_time = word
                .strip_suffix('s')
                .is_some_and(|number| number.parse::<u32>().is_ok());
            if is_time { "TIME" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn failed_combinations_are_shown_and_run_again() {
    let machine = machine();
    let answer = run(&machine).expect(7);
    assert!(
        answer.err.contains("3 combinations, 2 at a time"),
        "{}",
        answer.err
    );
    assert!(
        answer
            .err
            .contains("main/1: its command ended with exit code 7"),
        "{}",
        answer.err
    );
    assert!(
        answer.out.contains("main/2 | loss=3.5 argument <3> of 3"),
        "{}",
        answer.out
    );
    let sorted = machine
        .longshore(&["sweep", "last", "--sort", "acc", "--reverse"])
        .expect(0);
    insta::assert_snapshot!(without_times(&sorted.out), @"
    INDEX n STATE EXIT TOOK loss acc index
    2 3 succeeded 0 TIME 3.5 0.3 2
    1 2 failed 7 TIME 2.5 0.2 1
    0 1 succeeded 0 TIME 1.5 0.1 0
    ");
    assert!(
        sorted.err.contains("2 succeeded, 1 failed"),
        "{}",
        sorted.err
    );
    let first = machine
        .longshore(&["runs", "--output", "name"])
        .expect(0)
        .out;
    let first = first.trim().to_owned();

    fs::write(machine.home().join("fixed"), "").unwrap();
    let retry = machine.longshore(&["retry", "last"]).expect(0);
    assert!(retry.err.contains("1 combination"), "{}", retry.err);
    assert!(
        retry.out.contains("main/0 | loss=2.5 argument <2> of 1"),
        "{}",
        retry.out
    );
    let second = machine
        .longshore(&["runs", "--output", "name"])
        .expect(0)
        .out;
    let second = second.lines().next().unwrap().to_owned();
    let expected: Vec<(String, String)> = [&first, &second, &first]
        .map(|run| ("succeeded".to_owned(), run.clone()))
        .into();
    for run in [&first, &second] {
        let table = table(&machine, run);
        assert_eq!(states(&table), expected);
        assert_eq!(table["retries"], json!([second]));
        let row = &table["combinations"][1];
        assert_eq!(row["task"], "main/0");
        assert_eq!(row["parameters"], json!({"n": "2"}));
        assert_eq!(row["metrics"], json!({"acc": 0.2, "index": 1, "loss": 2.5}));
    }
    let again = machine.longshore(&["retry", &first]).expect(1);
    assert!(
        again.err.contains("no failed combinations (3 succeeded)"),
        "{}",
        again.err
    );
    let csv = machine
        .longshore(&["sweep", &first, "--output", "csv"])
        .expect(0)
        .out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "index,run,task,n,state,exitCode,started,finished,loss,acc,index"
    );
    assert!(
        lines[2].starts_with(&format!("1,{second},main/0,2,succeeded,0,20")),
        "{csv}"
    );
    assert!(lines[2].ends_with(",2.5,0.2,1"), "{csv}");
}

#[test]
fn a_running_sweep_is_shown_and_cancelled() {
    let machine = machine();
    let script = "echo '{\"step\": 5}' > $LONGSHORE_METRICS; echo loss=0.25; sleep 600";
    let words = [
        "run",
        "-d",
        "--sweep",
        "n=a,b,c",
        "--parallel",
        "2",
        "--",
        "sh",
        "-c",
        script,
    ];
    let name = machine.longshore(&words).expect(0).out;
    let name = name.trim();
    eventually("two tasks have written metrics", || {
        let table = table(&machine, name);
        let rows = table["combinations"].as_array().unwrap();
        let wrote = |row: &&Value| {
            row["state"] == "running" && row["metrics"] == json!({"loss": 0.25, "step": 5})
        };
        rows.iter().filter(wrote).count() == 2 && rows[2]["state"] == "pending"
    });
    let logs = machine.longshore(&["logs", &format!("{name}/1")]).expect(0);
    assert_eq!(logs.out, "main/1 | loss=0.25\n");
    let missing = machine.longshore(&["logs", &format!("{name}/3")]).expect(2);
    assert!(missing.err.contains("main/0 to main/2"), "{}", missing.err);
    machine.longshore(&["cancel", name]).expect(0);
    eventually("all combinations are cancelled", || {
        let table = table(&machine, name);
        states(&table).iter().all(|(state, _)| state == "cancelled")
    });
    let outputs = machine
        .longshore(&["outputs", name, "0", "--list"])
        .expect(0);
    assert!(
        outputs.out.contains("longshore-metrics.jsonl"),
        "{}",
        outputs.out
    );
}

#[test]
fn a_combination_has_its_own_retries_and_too_many_failures_stop_the_sweep() {
    let machine = machine();
    let script = "test -e $1/$2 || { touch $1/$2; exit 3; }";
    let folder = machine.home().to_str().unwrap();
    let words = [
        "run",
        "--retries",
        "1",
        "--sweep",
        "n=x,y",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        folder,
        "{n}",
    ];
    let answer = machine.longshore(&words).expect(0);
    assert!(
        answer.err.contains("attempt 1 of 2, restarting"),
        "{}",
        answer.err
    );
    let words = [
        "run",
        "--sweep",
        "n=1..20",
        "--parallel",
        "1",
        "--max-failed",
        "1",
        "--",
        "sh",
        "-c",
        "exit 4",
    ];
    machine.longshore(&words).expect(4);
    let states = states(&table(&machine, "last"));
    let count = |wanted: &str| states.iter().filter(|(state, _)| state == wanted).count();
    assert!(
        count("failed") >= 2 && count("cancelled") >= 10,
        "{states:?}"
    );
}

#[test]
fn hostile_metrics_do_not_reach_the_terminal() {
    let machine = machine();
    let script = "printf '{\"\\\\u001b[2Jx\": 1, \"ok\": 2}\\n{{{\\n\\377\\n{\"loss\": NaN}\\n' > $LONGSHORE_METRICS\n\
         head -c 3000000 /dev/zero | tr '\\0' x >> $LONGSHORE_METRICS; echo '{\"last\": 1}' >> $LONGSHORE_METRICS\n\
         printf 'loss=1\\033[2Jloss=x\\n'";
    machine.write("hostile.sh", script);
    let value = "n=\u{1b}[31mred";
    let words = ["run", "--sweep", value, "--", "sh", "hostile.sh"];
    machine.longshore(&words).expect(0);
    let shown = machine.longshore(&["sweep", "last"]).expect(0);
    assert!(
        !shown.out.contains('\u{1b}') && shown.out.contains("^[[31mred"),
        "{:?}",
        shown.out
    );
    let row = &table(&machine, "last")["combinations"][0];
    // Only the end of a large file is read, and long lines are skipped.
    assert_eq!(row["metrics"], json!({"loss": 1}));
}

#[test]
fn invalid_sweeps_are_refused_before_anything_is_created() {
    let machine = Machine::new();
    let refused = |words: &[&str]| {
        let words: Vec<&str> = std::iter::once("run")
            .chain(words.iter().copied())
            .collect();
        machine.longshore(&words).expect(2).err
    };
    for (words, problem) in [
        (&["--sweep", "lr", "--", "true"][..], "write NAME=VALUES"),
        (&["--sweep", "lr=", "--", "true"], "a value is empty"),
        (
            &["--sweep", "lr=1", "--", "true", "{rl}"],
            "the placeholder {rl}",
        ),
        (
            &["--sweep", "a=1..101", "--sweep", "b=1..100", "--", "true"],
            "10100 combinations",
        ),
        (&["--parallel", "2", "--", "true"], "applies only to sweeps"),
        (
            &["--sweep-file", "missing.csv", "--", "true"],
            "missing.csv",
        ),
        (&["--sweep", "a=1,2", "-i", "--", "true"], "this run has 2"),
    ] {
        let error = refused(words);
        assert!(error.contains(problem), "{words:?}: {error}");
    }
    assert!(machine.pid().is_none());
    let dry = machine.longshore(&["run", "--sweep", "a=x,y", "--dry-run", "--", "true", "{a}"]);
    let yaml = dry.expect(0).out;
    assert!(
        yaml.contains("backoffLimitPerIndex: 0") && yaml.contains("completions: 2"),
        "{yaml}"
    );
}

#[test]
fn other_runs_are_no_sweeps() {
    let machine = machine();
    machine.longshore(&["run", "--", "true", "{x}"]).expect(0);
    for verb in ["sweep", "retry"] {
        let answer = machine.longshore(&[verb, "last"]).expect(1);
        assert!(answer.err.contains("is not a sweep"), "{}", answer.err);
    }
}

#[test]
fn every_run_has_metrics() {
    let machine = machine();
    let script =
        "echo '{\"step\": 5, \"where\": '$LONGSHORE_INDEX'}' > $LONGSHORE_METRICS; echo loss=0.25";
    let start = |name: &str, words: &[&str]| {
        let begin = ["run", "--name", name];
        let end = ["--", "sh", "-c", script];
        machine
            .longshore(&[&begin[..], words, &end[..]].concat())
            .expect(0);
    };
    start("with-code", &[]);
    let found = machine
        .longshore(&["metrics", "with-code", "-o", "json"])
        .expect(0)
        .json();
    let expected = json!({"loss": 0.25, "step": 5, "where": 0});
    assert_eq!(
        found["tasks"],
        json!([{"task": "main/0", "role": "main", "index": 0, "metrics": expected}])
    );
    // Without code, and without the metrics of log lines.
    start("no-code", &["--no-code"]);
    let found = machine
        .longshore(&["metrics", "no-code", "--no-logs", "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(found["tasks"][0]["metrics"], json!({"step": 5, "where": 0}));
    let difference = machine
        .longshore(&["diff", "with-code", "no-code", "-o", "json"])
        .expect(0)
        .json();
    let steps = json!({"task": "main/0", "name": "step", "values": [5, 5], "difference": 0});
    let metrics = difference["metrics"].as_array().unwrap();
    assert!(metrics.contains(&steps), "{metrics:?}");
    // A run that writes no metrics has no outputs, and the message is the same as before.
    machine
        .longshore(&["run", "--name", "quiet", "--", "true"])
        .expect(0);
    let none = machine.longshore(&["metrics", "quiet"]).expect(0);
    let text = format!("{}{}", none.out, none.err);
    assert!(text.contains("No task has written metrics."), "{text}");
    let none = machine.longshore(&["outputs", "quiet"]).expect(1);
    assert!(none.err.contains("requests no outputs"), "{}", none.err);
}
