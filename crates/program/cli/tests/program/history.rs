//! Runs after their end: `runs`, `logs`, `cancel`.

use crate::machine::{Machine, eventually, unique_word};

#[test]
fn runs_and_logs_remain_when_the_cluster_stops() {
    let machine = Machine::new();
    machine.run_script("echo first").expect(0);
    machine.run_script("echo second; exit 3").expect(3);
    let runs = machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json();
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2, "{runs:?}");
    let names: Vec<&str> = runs
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    let logs: Vec<String> = names
        .iter()
        .map(|name| machine.longshore(&["logs", name]).expect(0).out)
        .collect();
    assert!(logs.contains(&"main/0 | first\n".to_owned()), "{logs:?}");
    assert!(logs.contains(&"main/0 | second\n".to_owned()), "{logs:?}");
    let table = machine.longshore(&["runs"]).expect(0).out;
    assert!(names.iter().all(|name| table.contains(name)), "{table}");
    machine.longshore(&["status"]).expect(3);
}

#[test]
fn a_detached_run_stays_active_until_it_is_cancelled() {
    let machine = Machine::new();
    let word = unique_word();
    let script = format!("echo up; sleep 300; : {word}");
    let detached = machine
        .longshore(&["run", "--detach", "--", "sh", "-c", &script])
        .expect(0);
    let name = detached.out.trim().to_owned();
    machine.longshore(&["status"]).expect(0);
    eventually("the run prints something", || {
        machine.longshore(&["logs", &name]).out.contains("| up")
    });
    machine.longshore(&["cancel", &name]).expect(0);
    machine.assert_no_process(&word);
    let runs = machine.longshore(&["runs"]).expect(0).out;
    assert!(runs.contains("cancelled"), "{runs}");
}

#[test]
fn an_unknown_run_is_an_error() {
    let machine = Machine::new();
    for verb in ["logs", "cancel"] {
        let answer = machine.longshore(&[verb, "nothing-here"]).expect(1);
        assert!(answer.err.contains("nothing-here"), "{}", answer.err);
        assert!(
            answer.err.contains("`longshore runs` lists the"),
            "{}",
            answer.err
        );
    }
}

#[test]
fn get_prints_objects_in_every_format() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.run_script("true").expect(0);
    let table = machine.longshore(&["get", "jobs"]).expect(0).out;
    assert!(table.starts_with("NAME "), "{table}");
    let all = machine.longshore(&["get", "jobs", "-A"]).expect(0).out;
    assert!(all.starts_with("NAMESPACE "), "{all}");
    let name = machine
        .longshore(&["get", "jobs", "-o", "name"])
        .expect(0)
        .out;
    let name = name.trim().strip_prefix("job.batch/").unwrap().to_owned();
    let one = machine
        .longshore(&["get", "job", &name, "-o", "json"])
        .expect(0)
        .json();
    assert_eq!(one["metadata"]["name"], name.as_str());
    let yaml = machine
        .longshore(&["get", "job", &name, "-o", "yaml"])
        .expect(0)
        .out;
    assert!(yaml.contains("kind: Job"), "{yaml}");
    let none = machine
        .longshore(&["get", "pods", "-l", "app=none"])
        .expect(0);
    assert!(
        none.out.is_empty() && none.err.contains("No pods"),
        "{}{}",
        none.out,
        none.err
    );
    let unknown = machine.longshore(&["get", "shoes"]).expect(2);
    assert!(unknown.err.contains("shoes"), "{}", unknown.err);
    let missing = machine.longshore(&["get", "pod", "missing"]).expect(1);
    assert!(
        missing.err.contains("\"missing\" not found"),
        "{}",
        missing.err
    );
}
