//! A run outlives the program that started it and that program's terminal, also on a
//! cluster that was started for the run. The cluster stops when its work is done.

use std::path::Path;

use crate::machine::{Machine, Running, eventually};
use crate::pseudoterminal::Terminal;

/// A script that prints, waits for a file, and exits with its own code.
fn script(go: &Path) -> String {
    format!(
        "echo begun; while ! test -e {}; do sleep 0.05; done; echo ended; exit 6",
        go.display()
    )
}

/// The name of the only run.
fn run_name(machine: &Machine) -> String {
    let mut name = String::new();
    eventually("the run is listed", || {
        let runs = machine.longshore(&["runs", "--output", "name"]).expect(0);
        name = runs.out.trim().to_owned();
        !name.is_empty()
    });
    name
}

fn run_state(machine: &Machine) -> serde_json::Value {
    machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json()[0]
        .clone()
}

fn wait_until_it_runs(machine: &Machine) {
    eventually("the task runs", || {
        machine.pid().is_some() && run_state(machine)["state"] == "running"
    });
}

/// The run is still active. Lets it end successfully; its cluster stops with it.
#[track_caller]
fn assert_active_until_released(machine: &Machine, go: &Path) {
    assert_eq!(run_state(machine)["state"], "running");
    let status = machine.status();
    assert_eq!(status["lifetime"], "on-demand", "{status}");
    let name = run_name(machine);
    assert_eq!(status["runs"], serde_json::json!([name]), "{status}");
    std::fs::write(go, "").unwrap();
    eventually("the cluster stops by itself", || machine.pid().is_none());
    assert_eq!(run_state(machine)["exitCode"], 6);
    let attached = machine.longshore(&["attach", &name]).expect(6);
    assert!(attached.out.ends_with("| ended\n"), "{}", attached.out);
    eventually("the next cluster stops as well", || machine.pid().is_none());
    machine.assert_no_process(machine.data().to_str().unwrap());
}

#[test]
fn a_run_outlives_a_program_that_a_signal_ends() {
    for name in ["KILL", "HUP", "TERM"] {
        let machine = Machine::new();
        let go = machine.code().join("go");
        // These tests may themselves run under nohup.
        let program = env!("CARGO_BIN_EXE_longshore");
        let line = format!(
            "exec env --default-signal=HUP {program} run -- sh -c '{}'",
            script(&go)
        );
        let run = Running::start(machine.shell(&line));
        wait_until_it_runs(&machine);
        run.signal(name);
        let answer = run.end();
        if name == "TERM" {
            assert_eq!(answer.code, 130, "{}", answer.err);
            assert!(answer.err.contains("continues: "), "{}", answer.err);
        }
        assert_active_until_released(&machine, &go);
    }
}

#[test]
fn a_run_outlives_its_terminal() {
    let machine = Machine::new();
    let go = machine.code().join("go");
    let command = machine.command(&["run", "--", "sh", "-c", &script(&go)]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("begun");
    assert_eq!(
        session(terminal.pid()),
        terminal.pid(),
        "the program uses the terminal"
    );
    terminal.close();
    terminal.end();
    assert_active_until_released(&machine, &go);
}

#[test]
fn ctrl_c_on_a_terminal_asks_and_detaching_keeps_the_run_active() {
    let machine = Machine::new();
    let go = machine.code().join("go");
    let command = machine.command(&["run", "--", "sh", "-c", &script(&go)]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("begun");
    terminal.write("\x03");
    terminal.wait_for("Detach (d) or cancel the run (c)?");
    terminal.write("d\n");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(text.contains("continues: "), "{text}");
    assert_active_until_released(&machine, &go);
}

/// The session ID, field 6 of `/proc/PID/stat`.
fn session(pid: i32) -> i32 {
    stat_field(pid, 6)
}

fn stat_field(pid: i32, number: usize) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let field = rest.split_ascii_whitespace().nth(number - 3).unwrap();
    field.parse().unwrap()
}

#[test]
fn the_cluster_inherits_no_descriptor_of_the_terminal_or_the_shell() {
    let machine = Machine::new();
    let go = machine.code().join("go");
    let held = machine.code().join("held");
    // The shell has a file open, as after `exec 9>file`.
    let program = env!("CARGO_BIN_EXE_longshore");
    let line = format!(
        "exec 9>{}; {program} run --detach -- sh -c '{}'; sleep 300",
        held.display(),
        script(&go)
    );
    let mut terminal = Terminal::start(&machine.shell(&line));
    wait_until_it_runs(&machine);
    let pid = machine.pid().unwrap();
    assert_eq!(session(pid), pid, "its own session");
    assert_eq!(stat_field(pid, 7), 0, "no terminal");
    let open: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .map(|path| path.display().to_string())
        .collect();
    let of_shell = |path: &&String| {
        path.starts_with("/dev/pts/") || path.contains("held") || path.contains("/dev/tty")
    };
    assert_eq!(open.iter().find(of_shell), None, "{open:?}");
    let log = machine.data().join("cluster.log").display().to_string();
    for number in [1, 2] {
        let path = std::fs::read_link(format!("/proc/{pid}/fd/{number}")).unwrap();
        assert_eq!(path.display().to_string(), log, "{number}");
    }
    terminal.close();
    terminal.end();
    assert_active_until_released(&machine, &go);
}

#[test]
fn a_cluster_stops_after_its_detached_run() {
    let machine = Machine::new();
    let go = machine.code().join("go");
    machine
        .longshore(&["run", "--detach", "--", "sh", "-c", &script(&go)])
        .expect(0);
    wait_until_it_runs(&machine);
    assert_active_until_released(&machine, &go);
}

/// A parameter server never ends by itself: a follower ends it when the other roles have
/// finished. In this test no client follows.
#[test]
fn serving_roles_end_without_a_follower() {
    let machine = Machine::new();
    let go = machine.code().join("go");
    machine.write(
        "longshore.toml",
        &format!(
            "[roles.worker]\ncommand = {:?}\n[roles.ps]\ncommand = [\"sleep\", \"300\"]\n",
            format!("while ! test -e {}; do sleep 0.05; done", go.display())
        ),
    );
    let run = Running::start(machine.command(&["run"]));
    wait_until_it_runs(&machine);
    run.signal("KILL");
    drop(run);
    std::fs::write(&go, "").unwrap();
    eventually("the cluster stops by itself", || machine.pid().is_none());
    assert_eq!(run_state(&machine)["state"], "succeeded");
}

/// The cluster completes the Job before it stops: the next cluster changes neither the
/// result nor the duration of the run.
#[test]
fn the_next_cluster_does_not_change_the_result_of_a_run() {
    let machine = Machine::new();
    machine.run_script("true").expect(0);
    assert_eq!(machine.pid(), None);
    let next_start = jiff::Timestamp::now();
    let job = &machine
        .longshore(&["get", "jobs", "--output", "json"])
        .expect(0)
        .json()["items"][0];
    let completed: jiff::Timestamp =
        serde_json::from_value(job["status"]["completionTime"].clone()).unwrap();
    let last = job["status"]["conditions"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(last["type"], "Complete");
    let concluded: jiff::Timestamp =
        serde_json::from_value(last["lastTransitionTime"].clone()).unwrap();
    assert!(completed <= next_start && concluded <= next_start, "{job}");
    let run = run_state(&machine);
    let finished: jiff::Timestamp = serde_json::from_value(run["finished"].clone()).unwrap();
    assert!(finished <= next_start, "{run}");
}

/// The events of a command with `--output json`.
fn events(machine: &Machine, arguments: &[&str], code: i32) -> Vec<serde_json::Value> {
    let answer = machine.longshore(arguments).expect(code);
    let lines = answer.out.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {}", answer.out))
}

#[test]
fn each_command_with_events_ends_with_a_last_one() {
    let machine = Machine::new();
    machine.write("a.py", "print('hello')");
    machine.longshore(&["up"]).expect(0);
    for (arguments, code, last) in [
        (&["run", "-o", "json", "--", "true"][..], 0, "finished"),
        (&["run", "-o", "json", "--", "false"], 1, "finished"),
        (&["run", "-d", "-o", "json", "--", "true"], 0, "detached"),
        (
            &["run", "--cron", "0 3 * * *", "-o", "json", "--", "true"],
            0,
            "detached",
        ),
        // Refused by the configuration, the folder, the plan, and preflight.
        (
            &["run", "-o", "json", "--memory", "1Xi", "--", "true"],
            2,
            "finished",
        ),
        (
            &["run", "missing", "-o", "json", "--", "true"],
            2,
            "finished",
        ),
        (&["run", "-o", "json"], 2, "finished"),
        (
            &["run", "-o", "json", "--cpu", "10000", "--", "true"],
            4,
            "finished",
        ),
        (&["attach", "missing", "-o", "json"], 1, "detached"),
        (&["retry", "missing", "-o", "json"], 1, "finished"),
    ] {
        let events = events(&machine, arguments, code);
        let kinds: Vec<&str> = events
            .iter()
            .filter_map(|event| event["event"].as_str())
            .collect();
        assert_eq!(kinds.last(), Some(&last), "{arguments:?}: {kinds:?}");
        let is_last = |kind: &&&str| ["finished", "detached"].contains(*kind);
        assert_eq!(
            kinds.iter().filter(is_last).count(),
            1,
            "{arguments:?}: {kinds:?}"
        );
        let end = &events[events.len() - 1];
        assert!(code == 0 || end["reason"].is_string(), "{end}");
        if last == "detached" && code == 0 {
            assert!(events[0]["run"].is_string(), "{}", events[0]);
        }
    }
}
