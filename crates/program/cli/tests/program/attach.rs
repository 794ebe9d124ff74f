//! `attach` from another terminal, and `rm`.

use std::io::{BufRead as _, BufReader};

use crate::machine::{Machine, Running, eventually};

#[test]
fn several_clients_attach_to_a_run() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let go = machine.code().join("go");
    let script = format!(
        "echo begun; while ! test -e {}; do sleep 0.05; done; echo ended; exit 6",
        go.display()
    );
    let detached = machine.longshore(&["run", "--detach", "--", "sh", "-c", &script]);
    let name = detached.expect(0).out.trim().to_owned();
    let attach = || Running::start(machine.command(&["attach", &name, "--output", "json"]));
    // A client that disconnects leaves the run active.
    let mut first = attach();
    let mut said = BufReader::new(first.output());
    let mut line = String::new();
    while !line.contains("\"line\":\"begun\"") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0);
    }
    first.signal("TERM");
    assert_eq!(first.end().code, 130);
    let second = attach();
    std::fs::write(&go, "").unwrap();
    let answer = second.end().expect(6);
    let events: Vec<serde_json::Value> = answer
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &'static str| events.iter().filter(move |event| event["event"] == kind);
    assert_eq!(of("started").next().unwrap()["run"], *name);
    let lines: Vec<_> = of("log").map(|event| &event["line"]).collect();
    assert_eq!(lines, ["begun", "ended"]);
    let end = events.last().unwrap();
    assert_eq!(
        (&end["event"], &end["exitCode"]),
        (&"finished".into(), &6.into())
    );
    assert_eq!(end["explanation"]["kind"], "exit-code");
    // `attach` after the end reports the same result.
    let again = machine.longshore(&["attach", &name]).expect(6);
    assert!(again.out.ends_with("ended\n"), "{}", again.out);
    let missing = machine.longshore(&["attach", "missing"]).expect(1);
    assert!(missing.err.contains("missing"), "{}", missing.err);
}

#[test]
fn rm_removes_runs_and_their_objects() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let name = |args: &[&str]| {
        let words = [&["run", "--detach", "--"], args].concat();
        machine.longshore(&words).expect(0).out.trim().to_owned()
    };
    let (finished, active) = (name(&["true"]), name(&["sleep", "300"]));
    machine.longshore(&["attach", &finished]).expect(0);
    let refused = machine.longshore(&["rm", &finished, &active]).expect(1);
    let text = format!("the run {active} is still active");
    assert!(refused.err.contains(&text), "{}", refused.err);
    machine.longshore(&["rm", &finished, "missing"]).expect(1);
    let listed = |machine: &Machine| {
        machine
            .longshore(&["runs", "--output", "name"])
            .expect(0)
            .out
    };
    assert_eq!(listed(&machine).lines().count(), 2);

    let removed = machine.longshore(&["rm", "--finished"]).expect(0);
    assert_eq!(removed.out, format!("The run {finished} was removed.\n"));
    assert_eq!(listed(&machine).trim(), active);
    machine.longshore(&["rm", "--force", &active]).expect(0);
    assert_eq!(listed(&machine), "");
    for kind in ["pods", "jobs", "secrets", "services"] {
        eventually("no object of the runs is left", || {
            let left = machine
                .longshore(&["get", kind, "--output", "name"])
                .expect(0);
            !left.out.contains(&active) && !left.out.contains(&finished)
        });
    }
}
