//! `down` while runs are active: it asks for confirmation, and every client that follows a
//! run, now or later, reports the same cause.

use crate::machine::{Machine, Running, eventually, processes_with, signal, unique_word};
use crate::pseudoterminal::Terminal;

/// The cause that every client reports.
const CAUSE: &str = "the cluster was stopped by `longshore down`";

/// Starts a run whose task keeps running; returns its name.
fn start(machine: &Machine, word: &str, retries: &str) -> String {
    let script = format!("echo begun; sleep 300; : {word}");
    let words = [
        "run",
        "--detach",
        "--retries",
        retries,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let name = machine.longshore(&words).expect(0).out.trim().to_owned();
    eventually("the task runs", || !processes_with(word).is_empty());
    name
}

fn follow(machine: &Machine, name: &str, output: &str) -> Running {
    let mut running = Running::start(machine.command(&["attach", name, "--output", output]));
    running.wait_for_output("begun");
    running
}

#[test]
fn without_a_terminal_down_requires_force_and_lists_the_runs() {
    let machine = Machine::new();
    let word = unique_word();
    let name = start(&machine, &word, "3");
    let refused = machine.longshore(&["down"]).expect(1);
    assert!(
        refused.err.contains("1 run is in progress"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains(&name), "{}", refused.err);
    assert!(refused.err.contains("down --force"), "{}", refused.err);
    assert!(!processes_with(&word).is_empty());

    let followers = ["text", "json"].map(|output| follow(&machine, &name, output));
    machine.longshore(&["down", "--force"]).expect(0);
    for follower in followers {
        let answer = follower.end().expect(3);
        assert!(answer.err.contains(CAUSE), "{}", answer.err);
        assert!(!answer.err.contains("lost"), "{}", answer.err);
    }
    machine.assert_no_process(&word);

    // The next cluster reports the same, and does not restart the run.
    let run = &machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json()[0];
    assert_eq!(
        (&run["state"], &run["exitCode"]),
        (&"failed".into(), &3.into())
    );
    let why = machine.longshore(&["why", &name]).expect(0);
    assert!(why.out.contains(CAUSE), "{}", why.out);
    let why = machine
        .longshore(&["why", &name, "--output", "json"])
        .expect(0);
    assert_eq!(why.json()["explanation"]["kind"], "cluster-stopped");
    let attached = machine.longshore(&["attach", &name]).expect(3);
    assert!(attached.err.contains(CAUSE), "{}", attached.err);
    machine.assert_no_process(&word);
    assert_eq!(machine.pid(), None, "no run is active");
}

#[test]
fn on_a_terminal_down_asks_for_confirmation() {
    let machine = Machine::new();
    let word = unique_word();
    let name = start(&machine, &word, "3");
    let ask = |answer: &str| {
        let mut terminal = Terminal::start(&machine.command(&["down"]));
        terminal.wait_for("[y/N]");
        assert!(terminal.text().contains(&name), "{}", terminal.text());
        terminal.write(answer);
        terminal.end()
    };
    let (status, text) = ask("\n");
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(!processes_with(&word).is_empty(), "the run is still active");
    let (status, text) = ask("y\n");
    assert!(status.success(), "{text}");
    assert!(text.contains("The embedded cluster has stopped."), "{text}");
    machine.assert_no_process(&word);
}

/// A cluster that a signal stopped is reported as such.
#[test]
fn a_follower_reports_that_a_signal_stopped_the_cluster() {
    let machine = Machine::new();
    let word = unique_word();
    let name = start(&machine, &word, "0");
    let follower = follow(&machine, &name, "text");
    signal(machine.pid().unwrap(), "TERM");
    let answer = follower.end().expect(3);
    assert!(
        answer.err.contains("the cluster was stopped by SIGTERM"),
        "{}",
        answer.err
    );
    machine.assert_no_process(&word);
    let stopped = jiff::Timestamp::now();
    let why = machine.longshore(&["why", &name]).expect(0);
    assert!(
        why.out.contains("the cluster was stopped by SIGTERM"),
        "{}",
        why.out
    );
    let run = &machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json()[0];
    let finished: jiff::Timestamp = serde_json::from_value(run["finished"].clone()).unwrap();
    assert!(finished <= stopped, "{run}");
}

#[test]
fn a_follower_reports_that_the_cluster_died() {
    let machine = Machine::new();
    let word = unique_word();
    let name = start(&machine, &word, "3");
    let follower = follow(&machine, &name, "text");
    signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has stopped", || machine.pid().is_none());
    // With retries left, the run restarts, and the follower still follows it.
    machine.longshore(&["up"]).expect(0);
    eventually("the task runs again", || !processes_with(&word).is_empty());
    machine.longshore(&["cancel", &name]).expect(0);
    let answer = follower.end().expect(130);
    assert!(
        answer
            .err
            .contains("the process of the embedded cluster has ended"),
        "{}",
        answer.err
    );
}

/// A command that runs while the cluster stops waits, then starts the next cluster.
#[test]
fn a_command_during_down_uses_the_next_cluster() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let down = Running::start(machine.command(&["down"]));
    let commands =
        [(); 3].map(|()| Running::start(machine.command(&["get", "nodes", "-o", "name"])));
    down.end().expect(0);
    for command in commands {
        let answer = command.end();
        // The command used the cluster before it stopped, or the next one.
        if answer.code != 0 {
            assert_eq!(answer.code, 3, "{}", answer.err);
        }
    }
    assert_eq!(
        machine
            .longshore(&["get", "nodes", "-o", "name"])
            .expect(0)
            .out,
        "node/longshore\n"
    );
}

/// Creates two schedules; returns their names.
fn schedules(machine: &Machine) -> [String; 2] {
    ["0 3 * * *", "30 4 1 1 *"].map(|cron| {
        let created = machine.longshore(&["run", "--cron", cron, "--", "true"]);
        created.expect(0).out.trim().to_owned()
    })
}

#[test]
fn down_names_the_schedules_that_end_with_the_cluster() {
    for (up, fate) in [
        (&["up"][..], "stopped until `longshore up"),
        (&["up", "--ephemeral"], "lost with the cluster"),
    ] {
        for down in [&["down"][..], &["down", "--force"]] {
            let machine = Machine::new();
            machine.longshore(up).expect(0);
            let [first, second] = schedules(&machine);
            let answer = machine.longshore(down).expect(0);
            let text = &answer.err;
            assert_eq!(text.matches("2 schedules are").count(), 1, "{text}");
            assert!(text.contains(fate), "{text}");
            let (first, second) = (
                format!("{first} (0 3 * * *)"),
                format!("{second} (30 4 1 1 *)"),
            );
            assert!(text.contains(&first) && text.contains(&second), "{text}");
        }
    }
}

#[test]
fn paused_schedules_do_not_end_with_the_cluster() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let [paused, active] = schedules(&machine);
    machine.longshore(&["cancel", &paused]).expect(0);
    let mut terminal = Terminal::start(&machine.command(&["down"]));
    terminal.wait_for("Stop the cluster? [y/N]");
    terminal.write("y\n");
    let (status, text) = terminal.end();
    assert!(status.success(), "{text}");
    assert!(text.contains("1 schedule is stopped"), "{text}");
    assert!(text.contains(&active) && !text.contains(&paused), "{text}");
}
