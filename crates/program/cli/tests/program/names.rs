//! Names of runs, tasks, pods and kinds: prefixes, `last`, tasks of runs, patterns, and
//! suggestions for mistyped names.

use std::{
    io::{BufRead as _, BufReader},
    time::Duration,
};

use crate::machine::{Machine, Running, eventually};

/// Starts a detached run; returns its name.
fn start(machine: &Machine, name: &str, more: &[&str], script: &str) -> String {
    let mut words = vec!["run", "-d", "--name", name];
    words.extend(more);
    words.extend(["--", "sh", "-c", script]);
    machine.longshore(&words).expect(0).out.trim().to_owned()
}

fn says(machine: &Machine, words: &[&str], text: &str) {
    eventually("the run prints something", || {
        machine.longshore(words).out.contains(text)
    });
}

#[test]
fn a_prefix_or_last_names_a_run() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let first = start(&machine, "digits", &[], "echo first");
    let second = start(&machine, "sweep", &[], "echo second; sleep 300");
    says(&machine, &["logs", "sweep"], "main/0 | second");
    says(&machine, &["logs", "last"], "main/0 | second");
    says(&machine, &["logs", "digits"], "main/0 | first");
    let why = machine.longshore(&["why", "last"]).expect(0);
    assert!(
        why.out.starts_with(&format!("{second} running")),
        "{}",
        why.out
    );
    let attached = machine.longshore(&["attach", "dig"]).expect(0);
    assert!(attached.out.contains("main/0 | first"), "{}", attached.out);
    let cancelled = machine.longshore(&["cancel", "last"]).expect(0);
    assert_eq!(cancelled.out, format!("The run {second} was cancelled.\n"));
    let removed = machine.longshore(&["rm", "dig"]).expect(0);
    assert_eq!(removed.out, format!("The run {first} was removed.\n"));

    let third = start(&machine, "sweep", &[], "true");
    for verb in ["logs", "why", "attach", "cancel", "rm"] {
        let answer = machine.longshore(&[verb, "sweep"]).expect(2);
        assert!(
            answer.err.contains(&format!(
                "\"sweep\" is ambiguous, 2 runs match: {third}, {second}"
            )),
            "{}",
            answer.err
        );
    }
    for (verb, word) in [
        ("logs", "swepe"),
        ("why", "sweeep"),
        ("cancel", "swep"),
        ("rm", "sewep"),
    ] {
        let answer = machine.longshore(&[verb, word]).expect(1);
        assert!(
            answer.err.contains("(did you mean \"sweep-"),
            "{}",
            answer.err
        );
    }
}

#[test]
fn exec_cp_and_port_forward_take_a_task() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = "echo ready; exec sleep 300";
    let alone = start(&machine, "alone", &[], script);
    machine.write(
        "longshore.toml",
        "[roles.worker]\ncount = 2\n[roles.ps]\ncount = 1\nservice = true\n",
    );
    let digits = start(&machine, "digits", &["--role", "worker=2"], script);
    for words in [
        ["logs", &alone],
        ["logs", "digits/worker/0"],
        ["logs", "digits/worker/1"],
    ] {
        says(&machine, &words, "ready");
    }
    let index = |place: &str| {
        let exec = [
            "exec",
            place,
            "--",
            "printenv",
            "LONGSHORE_ROLE",
            "LONGSHORE_INDEX",
        ];
        let answer = machine.longshore(&exec).expect(0);
        answer.out.split_whitespace().collect::<Vec<_>>().join("/")
    };
    assert_eq!(index(&format!("{digits}/worker/1")), "worker/1");
    assert_eq!(index("digits/worker/0"), "worker/0");
    assert_eq!(index("last/ps"), "ps/0");
    assert_eq!(index("alone"), "main/0");

    let several = machine.longshore(&["exec", "last", "--", "true"]).expect(2);
    assert!(
        several.err.contains(&format!(
            "the run {digits} has 3 tasks: name one, as in {digits}/"
        )),
        "{}",
        several.err
    );
    for (place, text) in [
        (
            "digits/wroker/0",
            "no role \"wroker\" (did you mean \"worker\"?)",
        ),
        ("digits/worker/7", "has no task worker/7; its tasks:"),
    ] {
        for words in [
            &["exec", place, "--", "true"][..],
            &["attach", place],
            &["port-forward", place, ":80"],
            &["cp", "longshore.toml", &format!("{place}:/tmp")],
        ] {
            let answer = machine.longshore(words).expect(2);
            assert!(answer.err.contains(text), "{words:?}: {}", answer.err);
        }
    }

    // Copies in both directions, to and from a folder of the task.
    let folder = machine
        .longshore(&["exec", "alone", "--", "mktemp", "-d"])
        .expect(0);
    let folder = folder.out.trim().to_owned();
    machine.write("data.csv", "a,b\n");
    machine
        .longshore(&["cp", "data.csv", &format!("{alone}/main/0:{folder}")])
        .expect(0);
    machine
        .longshore(&["cp", &format!("alone:{folder}/data.csv"), "back.csv"])
        .expect(0);
    assert_eq!(
        std::fs::read_to_string(machine.code().join("back.csv")).unwrap(),
        "a,b\n"
    );
    machine
        .longshore(&["exec", "alone", "--", "rm", "-r", &folder])
        .expect(0);

    let mut forward = Running::start(machine.command(&["port-forward", "digits/worker/1", ":80"]));
    let line = BufReader::new(forward.output())
        .lines()
        .next()
        .unwrap()
        .unwrap();
    assert!(line.contains(&format!(" -> {digits}-worker-1")), "{line}");
    forward.signal("INT");
    forward.end().expect(0);

    // `exec` in a finished task fails with the names of run and task.
    machine.longshore(&["cancel", "digits"]).expect(0);
    let over = machine
        .longshore(&["exec", "digits/worker/0", "--", "true"])
        .expect(1);
    assert!(
        over.err.contains(&format!("the task {digits}/worker/0")),
        "{}",
        over.err
    );
}

#[test]
fn exec_in_a_finished_task_is_rejected() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.run_script("echo over; exit 3").expect(3);
    for words in [
        &["exec", "last", "--", "true"][..],
        &["attach", "last/main/0"],
        &["port-forward", "last", ":80"],
        &["cp", "last:/tmp/x", "."],
    ] {
        let answer = machine.longshore(words).expect(1);
        assert!(
            answer
                .err
                .contains("/main/0 has ended, and its files are gone (exit code 3)"),
            "{words:?}: {}",
            answer.err
        );
        assert!(
            answer.err.contains("hint: `longshore logs job-"),
            "{}",
            answer.err
        );
        assert!(
            !answer.err.contains("500") && !answer.err.contains("GET "),
            "{}",
            answer.err
        );
    }
}

#[test]
fn errors_for_unknown_names_mention_runs_and_pods() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let run = start(&machine, "digits", &[], "sleep 300");
    for words in [
        &["exec", "digist", "--", "true"][..],
        &["attach", "digist"],
        &["attach", "digist", "-i"],
        &["port-forward", "digist", ":80"],
        &["cp", "digist:/tmp/x", "."],
        &["logs", "digist"],
    ] {
        let answer = machine.longshore(words).expect(1);
        assert!(
            answer.err.contains(&format!(
                "no run or pod \"digist\" in namespace \"default\" (did you mean \"{run}\"?)"
            )),
            "{words:?}: {}",
            answer.err
        );
        assert!(
            !answer.err.contains("404") && !answer.err.contains("/api/"),
            "{}",
            answer.err
        );
    }
    let pod = machine
        .longshore(&["exec", "pod/none", "--", "true"])
        .expect(1);
    assert!(
        pod.err.contains("no pod \"none\" in namespace \"default\""),
        "{}",
        pod.err
    );
    for word in ["", "a//b", "a/b/c"] {
        let answer = machine.longshore(&["logs", word]).expect(2);
        assert!(answer.err.contains("RUN/ROLE/INDEX"), "{}", answer.err);
    }
}

#[test]
fn logs_of_a_task_that_does_not_exist() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.run_script("echo one").expect(0);
    let answer = machine
        .longshore(&["logs", "last", "--index", "7"])
        .expect(2);
    assert!(
        answer
            .err
            .contains("has no task with the index 7; its tasks: main/0"),
        "{}",
        answer.err
    );
    assert!(answer.out.is_empty(), "{}", answer.out);
    let answer = machine.longshore(&["logs", "last/main/7"]).expect(2);
    assert!(answer.err.contains("has no task main/7"), "{}", answer.err);
    let answer = machine
        .longshore(&["logs", "last", "--role", "mian"])
        .expect(2);
    assert!(
        answer.err.contains("did you mean \"main\"?"),
        "{}",
        answer.err
    );

    // The logs of deleted pods are kept.
    machine.longshore(&["delete", "pods", "--all"]).expect(0);
    let answer = machine.longshore(&["logs", "last"]).expect(0);
    assert_eq!(answer.out, "main/0 | one\n");
}

#[test]
fn logs_are_selected_by_time_and_printed_with_timestamps() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine
        .run_script("echo one; echo two; echo three")
        .expect(0);
    let timed = machine
        .longshore(&["logs", "last", "--timestamps", "--tail", "2"])
        .expect(0);
    let lines: Vec<&str> = timed.out.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let text = lines[1].strip_prefix("main/0 | ").unwrap();
    let (time, text) = text.split_once(' ').unwrap();
    assert_eq!(text, "three");
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
    let recent = machine
        .longshore(&["logs", "last", "--since", "1h"])
        .expect(0);
    assert_eq!(recent.out.lines().count(), 3, "{}", recent.out);
    std::thread::sleep(Duration::from_millis(2100));
    let none = machine
        .longshore(&["logs", "last", "--since", "1s"])
        .expect(0);
    assert_eq!(none.out, "");
    let wrong = machine
        .longshore(&["logs", "last", "--since", "soon"])
        .expect(2);
    assert!(wrong.err.contains("10m"), "{}", wrong.err);
}

#[test]
fn active_runs_are_followed_since_a_time_and_with_timestamps() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let go = machine.home().join("go");
    let script = format!(
        "echo old; sleep 8; echo new; while [ ! -e {} ]; do sleep 0.1; done; echo last",
        go.display()
    );
    let run = start(&machine, "timed", &[], &script);
    says(&machine, &["logs", &run], "new");
    let options = ["logs", &run, "--follow", "--since", "6s", "--timestamps"];
    let mut follow = Running::start(machine.command(&options));
    let mut lines = BufReader::new(follow.output()).lines();
    let mut followed = vec![lines.next().unwrap().unwrap()];
    std::fs::write(go, "").unwrap();
    followed.extend(lines.map(Result::unwrap));
    follow.end().expect(0);
    assert_eq!(followed.len(), 2, "{followed:?}");
    for (line, wanted) in followed.iter().zip(["new", "last"]) {
        let text = line.strip_prefix("main/0 | ").unwrap();
        let (time, text) = text.split_once(' ').unwrap();
        assert_eq!(text, wanted);
        assert!(
            time.starts_with("20") && time.ends_with('Z') && time.len() == 30,
            "{time}"
        );
    }
}

#[test]
fn runs_are_selected_by_label_and_sorted() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    // Created within one second, and not in the order of their names.
    let names: Vec<String> = ["b", "c", "a", "d"]
        .iter()
        .enumerate()
        .map(|(n, name)| {
            start(
                &machine,
                name,
                &["--label", &format!("n={n}"), "--label", "sweep=x"],
                "true",
            )
        })
        .collect();
    let listed = machine.longshore(&["runs", "-o", "name"]).expect(0).out;
    let listed: Vec<&str> = listed.lines().collect();
    let newest_first: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    assert_eq!(listed, newest_first);
    let some = machine
        .longshore(&["runs", "-l", "n in (0,2)", "-o", "name"])
        .expect(0)
        .out;
    assert_eq!(some, format!("{}\n{}\n", names[2], names[0]));
    let wide = machine
        .longshore(&["runs", "-l", "n=3", "-o", "wide"])
        .expect(0)
        .out;
    assert!(wide.contains("n=3,sweep=x"), "{wide}");
    let none = machine.longshore(&["runs", "-l", "n=9"]).expect(0);
    assert!(
        none.out.is_empty() && none.err.contains("No runs match"),
        "{}",
        none.err
    );
}

#[test]
fn runs_can_be_watched() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let first = start(&machine, "first", &[], "true");
    let mut table = Running::start(machine.command(&["runs", "--watch"]));
    let mut table_lines = BufReader::new(table.output()).lines();
    let mut json = Running::start(machine.command(&["runs", "--watch", "-o", "json"]));
    let mut json_lines = BufReader::new(json.output()).lines();
    assert!(table_lines.next().unwrap().unwrap().starts_with("NAME"));
    assert!(table_lines.next().unwrap().unwrap().starts_with(&first));
    assert!(json_lines.next().unwrap().unwrap().contains(&first));
    let second = start(&machine, "second", &[], "exit 3");
    let ended = table_lines
        .map(Result::unwrap)
        .find(|line| line.starts_with(&second) && line.contains("failed"));
    assert!(ended.is_some());
    let ended = json_lines.map(Result::unwrap).find_map(|line| {
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        (value["run"]["name"] == second.as_str() && value["run"]["exitCode"] == 3).then_some(value)
    });
    assert_eq!(ended.unwrap()["type"], "MODIFIED");
    for watch in [table, json] {
        watch.signal("INT");
        watch.end().expect(0);
    }
}

#[test]
fn rm_accepts_patterns() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let sweeps = [1, 2, 3].map(|n| {
        let run = machine.longshore(&["run", "--name", &format!("sweep-{n}"), "--", "true"]);
        run.expect(0);
    });
    assert_eq!(sweeps.len(), 3);
    let other = start(&machine, "other", &[], "sleep 300");
    let names = || machine.longshore(&["runs", "-o", "name"]).expect(0).out;
    let tried = machine.longshore(&["rm", "sweep-*", "--dry-run"]).expect(0);
    assert_eq!(tried.out.lines().count(), 3, "{}", tried.out);
    assert!(tried.out.contains("would be removed"), "{}", tried.out);
    assert_eq!(names().lines().count(), 4);
    machine.longshore(&["rm", "sweep-[12]-*"]).expect(0);
    assert_eq!(names().lines().count(), 2);
    // Nothing is removed if one argument matches nothing or an active run.
    let none = machine.longshore(&["rm", "sweep-*", "swop-*"]).expect(1);
    assert!(
        none.err
            .contains("no run in namespace \"default\" matches \"swop-*\""),
        "{}",
        none.err
    );
    let active = machine.longshore(&["rm", "*"]).expect(1);
    assert!(
        active
            .err
            .contains(&format!("the run {other} is still active")),
        "{}",
        active.err
    );
    let wrong = machine.longshore(&["rm", "sweep-["]).expect(2);
    assert!(wrong.err.contains("invalid pattern"), "{}", wrong.err);
    assert_eq!(names().lines().count(), 2);
    let finished = machine
        .longshore(&["rm", "--finished", "--force"])
        .expect(0);
    assert_eq!(finished.out.lines().count(), 1, "{}", finished.out);
    assert_eq!(names(), format!("{other}\n"));
    machine.longshore(&["rm", "*", "--force"]).expect(0);
    assert_eq!(names(), "");
}

#[test]
fn delete_accepts_manifests() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write(
        "maps.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
    );
    machine.longshore(&["create", "-f", "maps.yaml"]).expect(0);
    machine.longshore(&["delete", "configmap", "b"]).expect(0);
    // If one object is missing, nothing is deleted.
    let missing = machine.longshore(&["delete", "-f", "maps.yaml"]).expect(1);
    assert!(missing.err.contains("\"b\" not found"), "{}", missing.err);
    machine.longshore(&["get", "configmap", "a"]).expect(0);
    let deleted = ["delete", "-f", "maps.yaml", "--ignore-not-found"];
    assert_eq!(
        machine.longshore(&deleted).expect(0).out,
        "configmap/a deleted\n"
    );
    machine.longshore(&["get", "configmap", "a"]).expect(1);
    for words in [
        &["delete", "-f", "maps.yaml", "pods"][..],
        &["delete", "-f", "maps.yaml", "--all"],
        &["delete"],
    ] {
        machine.longshore(words).expect(2);
    }
}

#[test]
fn a_mistyped_kind_or_command_gets_a_suggestion() {
    let machine = Machine::new();
    for (words, near) in [
        (&["get", "pdos"][..], "did you mean pods?"),
        (&["describe", "jbo", "x"], "did you mean job?"),
        (&["lgos", "x"], "'logs'"),
        (&["port-forwrad", "x"], "'port-forward'"),
    ] {
        let answer = machine.longshore(words).expect(2);
        assert!(answer.err.contains(near), "{words:?}: {}", answer.err);
    }
    let far = machine.longshore(&["get", "shoes"]).expect(2);
    assert!(!far.err.contains("did you mean"), "{}", far.err);
}

#[test]
fn an_empty_selector_does_not_select_everything() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write(
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    );
    machine.longshore(&["create", "-f", "map.yaml"]).expect(0);
    for words in [
        &["get", "cm", "-l", ""][..],
        &["get", "cm", "-l", "  "],
        &["get", "cm", "--field-selector", ""],
        &["describe", "cm", "-l", ""],
        &["label", "cm", "-l", "", "a=b"],
        &["label", "cm", "--field-selector=", "a=b"],
        &["delete", "cm", "-l", ""],
        &["delete", "cm", "--field-selector", ""],
        &["wait", "cm", "-l", ""],
        &["watch", "cm", "-l", ""],
        &["runs", "-l", ""],
        &["resolve", "--job", "worker="],
    ] {
        let answer = machine.longshore(words).expect(2);
        assert!(
            answer.err.contains("which would select every object") || words[0] == "resolve",
            "{words:?}: {}",
            answer.err
        );
    }
    let map = machine
        .longshore(&["get", "cm", "a", "-o", "json"])
        .expect(0)
        .json();
    assert!(map["metadata"]["labels"].is_null(), "{map}");
}

#[test]
fn usage_lines_in_errors_equal_those_in_the_help() {
    let machine = Machine::new();
    for (words, usage) in [
        (
            &["exec"][..],
            "Usage: longshore exec [OPTIONS] <TASK> -- <COMMAND>...\n",
        ),
        (&["logs"], "Usage: longshore logs [OPTIONS] <RUN>...\n"),
        (&["cp", "a"], "Usage: longshore cp [OPTIONS] <FROM> <TO>\n"),
        (
            &["wait"],
            "Usage: longshore wait [OPTIONS] <KIND> [NAME]...\n",
        ),
        (
            &["run", "--nothing"],
            "Usage: longshore run [OPTIONS] [DIR] [-- <COMMAND>...]\n",
        ),
    ] {
        // The test's environment sets LONGSHORE_DATA_DIR, like an option.
        let answer = machine.longshore(words).expect(2);
        assert!(answer.err.contains(usage), "{}", answer.err);
    }
}
