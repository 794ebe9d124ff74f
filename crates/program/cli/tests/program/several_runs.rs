//! Commands that read or repeat several runs: names, patterns, and output in one form.

use serde_json::Value;

use crate::machine::{Machine, eventually};

/// Starts detached runs with these names and commands; returns their full names.
fn start(machine: &Machine, runs: &[(&str, &str)]) -> Vec<String> {
    let one = |(name, script): &(&str, &str)| {
        let words = ["run", "--detach", "--name", name, "--", "sh", "-c", script];
        machine.longshore(&words).expect(0).out.trim().to_owned()
    };
    runs.iter().map(one).collect()
}

fn wait_for(machine: &Machine, run: &str, state: &str) {
    eventually("the run reaches a state", || {
        let words = ["runs", "--name", run, "--output", "json"];
        machine.longshore(&words).expect(0).json()[0]["state"] == state
    });
}

#[test]
fn logs_of_several_runs_and_pods_begin_with_their_name() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let runs = [
        ("lr-a", "echo one; echo two"),
        ("lr-b", "echo three; exit 3"),
    ];
    let started = start(&machine, &runs);
    let [a, b] = &started[..] else { unreachable!() };
    wait_for(&machine, a, "succeeded");
    wait_for(&machine, b, "failed");

    let both = machine.longshore(&["logs", a, b]).expect(0).out;
    let expected = format!("{a}/main/0 | one\n{a}/main/0 | two\n{b}/main/0 | three\n");
    assert_eq!(both, expected);
    let commas = format!("{a},{b}/main/0");
    assert_eq!(
        machine.longshore(&["logs", &commas]).expect(0).out,
        expected
    );
    let last = machine
        .longshore(&["logs", "lr-*", "--tail", "1"])
        .expect(0);
    let mut lines: Vec<&str> = last.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [format!("{a}/main/0 | two"), format!("{b}/main/0 | three")]
    );
    // A pattern has this form also if it matches one run.
    let only = machine
        .longshore(&["logs", "lr-b*", "--follow"])
        .expect(0)
        .out;
    assert_eq!(only, format!("{b}/main/0 | three\n"));

    let pods = ["get", "pods", "--output", "name"];
    let pods = machine.longshore(&pods).expect(0).out;
    let pod = pods.lines().find(|pod| pod.contains(a)).unwrap();
    let mixed = machine.longshore(&["logs", b, pod]).expect(0).out;
    let expected = format!("{b}/main/0 | three\n{pod} | one\n{pod} | two\n");
    assert_eq!(mixed, expected);
    let all = ["logs", pod, pod, "--all-containers", "--tail", "1"];
    let all = machine.longshore(&all).expect(0).out;
    assert!(all.contains(&format!("{pod} (main) | two")), "{all}");

    // An invalid name is an error before anything is printed.
    let wrong = machine.longshore(&["logs", a, "missing"]).expect(1);
    assert!(
        wrong.out.is_empty() && wrong.err.contains("missing"),
        "{}",
        wrong.err
    );
    let wrong = machine.longshore(&["logs", a, pod, "--previous"]).expect(2);
    assert!(
        wrong.out.is_empty() && wrong.err.contains("--previous"),
        "{}",
        wrong.err
    );
}

#[test]
fn active_runs_are_followed_together() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let wait = |own: &str, other: &str| {
        let folder = machine.home().display();
        format!(
            "touch {folder}/{own}; until test -e {folder}/{other}; do sleep 0.05; done; echo {own}"
        )
    };
    let runs = [("f-a", &*wait("a", "b")), ("f-b", &*wait("b", "a"))];
    let started = start(&machine, &runs);
    let followed = machine
        .longshore(&["logs", "f-*", "--follow"])
        .expect(0)
        .out;
    for (run, text) in started.iter().zip(["a", "b"]) {
        let line = format!("{run}/main/0 | {text}\n");
        assert!(followed.contains(&line), "{followed}");
    }
}

#[test]
fn why_explains_several_runs() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let started = start(&machine, &[("w-a", "true"), ("w-b", "exit 3")]);
    let [a, b] = &started[..] else { unreachable!() };
    wait_for(&machine, a, "succeeded");
    wait_for(&machine, b, "failed");
    let both = machine.longshore(&["why", a, b]).expect(0).out;
    let parts: Vec<&str> = both.split("\n\n").collect();
    assert!(
        parts.len() == 2 && parts[0].starts_with(&format!("{a} succeeded")),
        "{both}"
    );
    assert!(parts[1].starts_with(&format!("{b} failed")), "{both}");

    let json = |words: &[&str]| -> Value {
        let words = [&["why", "--output", "json"], words].concat();
        machine.longshore(&words).expect(0).json()
    };
    assert_eq!(json(&[b])["run"], b.as_str());
    assert_eq!(json(&["w-b*"])[0]["run"], b.as_str());
    let runs = |answers: &Value| -> Vec<String> {
        let answers = answers.as_array().unwrap().iter();
        answers
            .map(|one| one["run"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(runs(&json(&[b, a])), [b.clone(), a.clone()]);
    let wrong = machine
        .longshore(&["why", a, "missing", "--output", "json"])
        .expect(1);
    assert!(
        wrong.out.is_empty() && wrong.err.contains("missing"),
        "{}",
        wrong.err
    );
}

#[test]
fn several_sweeps_are_retried_at_once() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let folder = machine.home().to_path_buf();
    let script = format!("test {{n}} = 1 || test -e {}/fixed", folder.display());
    let sweep = |name: &str| {
        let words = [
            "run", "--name", name, "--sweep", "n=1,2", "--", "sh", "-c", &script,
        ];
        machine.longshore(&words).expect(1);
    };
    sweep("s-a");
    sweep("s-b");
    start(&machine, &[("s-c", "exit 3")]);
    std::fs::write(folder.join("fixed"), "").unwrap();

    let followed = machine.longshore(&["retry", "s-*"]).expect(2);
    assert!(followed.err.contains("--detach"), "{}", followed.err);
    let words = ["retry", "s-*", "--detach", "--output", "json"];
    let retried = machine.longshore(&words).expect(0);
    let events: Vec<Value> = retried
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let started: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "started")
        .collect();
    assert_eq!(started.len(), 2, "{}", retried.out);
    assert_eq!(
        events.last().unwrap()["event"],
        "detached",
        "{}",
        retried.out
    );
    for event in started {
        wait_for(&machine, event["run"].as_str().unwrap(), "succeeded");
    }
    // Nothing is left to retry.
    let again = machine.longshore(&["retry", "s-*", "--detach"]).expect(0);
    assert!(again.out.is_empty(), "{}", again.out);
    assert!(
        again.err.contains("no failed combinations"),
        "{}",
        again.err
    );
}

#[test]
fn metrics_and_top_take_several_runs() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let write = |loss: &str| format!("echo '{{\"loss\": {loss}}}' >> $LONGSHORE_METRICS");
    let (one, two) = (write("0.5"), write("0.25"));
    let started = start(&machine, &[("m-a", &one), ("m-b", &two)]);
    let [a, b] = &started[..] else { unreachable!() };
    wait_for(&machine, a, "succeeded");
    wait_for(&machine, b, "succeeded");
    let runs = |answers: &Value| -> Vec<String> {
        let answers = answers.as_array().unwrap().iter();
        answers
            .map(|one| one["run"].as_str().unwrap().to_owned())
            .collect()
    };

    let both = machine.longshore(&["metrics", b, a]).expect(0).out;
    let parts: Vec<&str> = both.split("\n\n").collect();
    assert_eq!(parts.len(), 2, "{both}");
    for (part, (run, loss)) in parts.iter().zip([(b, "0.25"), (a, "0.5")]) {
        assert!(part.starts_with(&format!("{run}\n")), "{both}");
        assert!(part.trim_end().ends_with(loss), "{both}");
    }
    let table = machine.longshore(&["top", "m-*", "--once"]).expect(0).out;
    for run in [a, b] {
        assert!(table.contains(&format!("{run}/main/0 ")), "{table}");
    }
    for command in ["metrics", "top"] {
        let json = |words: &[&str]| -> Value {
            let words = [&[command, "--output", "json"], words].concat();
            machine.longshore(&words).expect(0).json()
        };
        assert_eq!(runs(&json(&[b, a])), [b.clone(), a.clone()]);
        assert_eq!(runs(&json(&["m-b*"])), std::slice::from_ref(b));
        let commas = format!("{a},{b},{a}");
        assert_eq!(runs(&json(&[&commas])), [a.clone(), b.clone()]);
        // An invalid name is an error before anything is printed.
        let wrong = machine.longshore(&[command, a, "missing"]).expect(1);
        assert!(
            wrong.out.is_empty() && wrong.err.contains("missing"),
            "{}",
            wrong.err
        );
    }
    let single = ["metrics", a, "--output", "json"];
    assert_eq!(
        machine.longshore(&single).expect(0).json()["run"],
        a.as_str()
    );
}

#[test]
fn outputs_of_several_runs_have_a_folder_each() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let runs = ["o-a", "o-b"].map(|name| {
        let script = format!("echo {name} > result.txt");
        let words = ["run", "--name", name, "--output-files", "*.txt", "--detach"];
        let words = [&words[..], &["--", "sh", "-c", &script]].concat();
        machine.longshore(&words).expect(0).out.trim().to_owned()
    });
    let empty = start(&machine, &[("o-c", "true")]).remove(0);
    for run in runs.iter().chain([&empty]) {
        wait_for(&machine, run, "succeeded");
    }
    let [a, b] = &runs;
    let read = |path: String| std::fs::read_to_string(machine.code().join(path)).unwrap();

    let both = format!("{a},{b}");
    machine.longshore(&["outputs", &both]).expect(0);
    let fetched = machine
        .longshore(&["outputs", "o-*", "--to", "got"])
        .expect(0);
    for (run, text) in runs.iter().zip(["o-a\n", "o-b\n"]) {
        assert_eq!(read(format!("outputs/{run}/result.txt")), text);
        assert_eq!(read(format!("got/{run}/result.txt")), text);
    }
    let none = format!("the run {empty} requests no outputs");
    assert!(fetched.err.contains(&none), "{}", fetched.err);

    let list = machine.longshore(&["outputs", &both, "--list"]).expect(0);
    let parts: Vec<&str> = list.out.split("\n\n").collect();
    assert_eq!(parts.len(), 2, "{}", list.out);
    for (part, run) in parts.iter().zip([a, b]) {
        assert!(part.starts_with(&format!("{run}\n")), "{}", list.out);
        assert!(part.contains("result.txt"), "{}", list.out);
    }
    let json = |words: &str| {
        let words = ["outputs", words, "main/0", "--output", "json"];
        machine.longshore(&words).expect(0).json()
    };
    assert_eq!(json(a)["run"], a.as_str());
    assert_eq!(json("o-b*")[0]["run"], b.as_str());
    assert_eq!(json(&both)[1]["tasks"][0]["files"][0]["path"], "result.txt");

    let named = format!("{empty},{a}");
    let refused = machine.longshore(&["outputs", &named, "--list"]).expect(1);
    assert!(refused.out.contains("result.txt"), "{}", refused.out);
    assert!(refused.err.contains(&none), "{}", refused.err);

    // A run that fails does not stop the others.
    std::fs::write(machine.code().join(format!("got/{a}/result.txt")), "other").unwrap();
    std::fs::remove_file(machine.code().join(format!("got/{b}/result.txt"))).unwrap();
    let failed = machine
        .longshore(&["outputs", &both, "--to", "got"])
        .expect(1);
    assert!(failed.err.contains("1 of 2 runs failed"), "{}", failed.err);
    assert_eq!(read(format!("got/{b}/result.txt")), "o-b\n");
    // A second name is a role, and the error says how to name several runs.
    let role = machine.longshore(&["outputs", a, b]).expect(2);
    assert!(role.err.contains("A,B"), "{}", role.err);
}

#[test]
fn commands_for_one_run_name_those_for_several() {
    let machine = Machine::new();
    for (command, instead) in [("attach", "longshore logs"), ("sweep", "longshore metrics")] {
        let refused = machine.longshore(&[command, "a", "b"]).expect(2);
        let tip = format!("`longshore {command}` takes one run");
        assert!(
            refused.err.contains(&tip) && refused.err.contains(instead),
            "{}",
            refused.err
        );
        let option = machine.longshore(&[command, "a", "--bad"]).expect(2);
        assert!(!option.err.contains("takes one run"), "{}", option.err);
    }
}
