//! `longshore dev`: changes of the folder restart the command.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::ChildStdout,
    sync::mpsc,
    time::Duration,
};

use crate::{
    machine::{Machine, Running, TIMEOUT, eventually, kill_with, processes_with, unique_word},
    pseudoterminal::Terminal,
};

/// The lines of a program's output, as they arrive.
pub(super) struct Output(pub(super) mpsc::Receiver<String>);

impl Output {
    fn of(output: ChildStdout) -> Self {
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// Waits for a line with this text.
    #[track_caller]
    pub(super) fn see(&self, text: &str) {
        self.see_all(&[text]);
    }

    /// Waits for lines with these texts, in any order: standard output and standard error of a
    /// task are two streams.
    #[track_caller]
    pub(super) fn see_all(&self, texts: &[&str]) {
        let (mut seen, mut missing) = (Vec::new(), texts.to_vec());
        while !missing.is_empty() {
            match self.0.recv_timeout(TIMEOUT) {
                Ok(line) => {
                    missing.retain(|text| !line.contains(text));
                    seen.push(line);
                }
                Err(error) => panic!("no line with {missing:?} ({error}): {seen:#?}"),
            }
        }
    }
}

/// `longshore dev` with these arguments.
pub(super) fn dev(machine: &Machine, arguments: &[&str]) -> (Running, Output) {
    let mut running = Running::start(machine.command(&[&["dev"], arguments].concat()));
    let output = Output::of(running.output());
    (running, output)
}

#[test]
fn each_change_restarts_the_command_until_ctrl_c() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let word = unique_word();
    machine.write(".gitignore", "*.tmp\n");
    machine.write("lib.sh", "VERSION=1\n");
    let script = format!(
        ". ./lib.sh\necho version $VERSION $(ls | tr '\\n' ' ')\nsleep 300 & : {word}\nwait\n"
    );
    machine.write("train.sh", &script);
    let (mut running, output) = dev(&machine, &["--", "sh", "train.sh", &word]);
    output.see("main/0 | version 1 lib.sh train.sh");
    running.wait_for_error("each change in . restarts the command");
    // A change, a new file, and a file that is ignored.
    machine.write("lib.sh", "VERSION=2\n");
    running.wait_for_error("changed: lib.sh (1 file, 10 B); restarted in 0.");
    output.see("main/0 | version 2 lib.sh train.sh");
    machine.write("ignored.tmp", "");
    // A file that is saved without a change.
    machine.write("lib.sh", "VERSION=2\n");
    std::thread::sleep(Duration::from_secs(1));
    fs::create_dir(machine.code().join("more")).unwrap();
    machine.write("more/data.txt", "data");
    running.wait_for_error("changed: more/data.txt (1 file, 4 B); ");
    output.see("main/0 | version 2 lib.sh more train.sh");
    let text = running.errors();
    assert_eq!(text.matches("changed: lib.sh").count(), 1, "{text}");
    // Removed and renamed files.
    fs::remove_dir_all(machine.code().join("more")).unwrap();
    output.see("main/0 | version 2 lib.sh train.sh");
    fs::rename(machine.code().join("lib.sh"), machine.code().join("old.sh")).unwrap();
    output.see("the command ended with exit code 2; waiting for the next change");
    // A command that fails waits for the next change.
    machine.write(
        "lib.sh",
        "VERSION=3\nmkdir -p out; echo kept > out/result\n",
    );
    output.see("main/0 | version 3 lib.sh");
    // Files that the command has created are kept.
    machine.write("train.sh", "cat out/result; echo failing; exit 7\n");
    output.see_all(&[
        "main/0 | kept",
        "main/0 | failing",
        "exit code 7; waiting for the next change",
    ]);
    // No process of an earlier command is left.
    eventually("the earlier commands have ended", || {
        let left = processes_with(&word);
        !left.iter().any(|arguments| arguments.starts_with("sleep"))
    });
    machine.write("train.sh", &script);
    output.see("main/0 | version 3");
    running.signal("INT");
    let answer = running.end().expect(130);
    assert!(answer.err.contains("was cancelled"), "{}", answer.err);
    machine.assert_no_process(&word);
}

#[test]
fn all_tasks_get_changes_and_new_pods_too() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let word = unique_word();
    machine.write("version", "1\n");
    machine.write(
        "longshore.toml",
        "name = 'app'\nignore = ['longshore.toml']\n\
         [roles.chief]\ncount = 1\n[roles.worker]\ncount = 2\n",
    );
    let script = format!(
        "echo $LONGSHORE_ROLE $TF_CONFIG | head -c 8; echo; cat version; exec sleep 300; : {word}"
    );
    let (mut running, output) = dev(&machine, &["--keep", "--", "sh", "-c", &script]);
    for _ in 0..3 {
        output.see("| 1");
    }
    machine.write("version", "2\n");
    for _ in 0..3 {
        output.see("| 2");
    }
    running.wait_for_error("changed: version (1 file, 2 B); restarted 3 tasks in ");

    // The connections for changes end, and are opened again.
    kill_with("bootstrap receive");
    machine.write("version", "3\n");
    for _ in 0..3 {
        output.see("| 3");
    }
    // A new pod gets the packed code and all later changes before its command starts.
    let pods = machine
        .longshore(&["get", "pods", "-o", "name"])
        .expect(0)
        .out;
    let worker = pods.lines().find(|pod| pod.contains("worker-1")).unwrap();
    machine
        .longshore(&["delete", worker, "--grace-period", "0"])
        .expect(0);
    loop {
        let line = output.0.recv_timeout(TIMEOUT).unwrap();
        assert!(!line.ends_with("| 1"), "old code runs: {line}");
        if line.contains("worker/1") && line.ends_with("| 3") {
            break;
        }
    }
    // With --keep, the run continues.
    running.signal("INT");
    let answer = running.end().expect(130);
    assert!(answer.err.contains("continues"), "{}", answer.err);
    let runs = machine.longshore(&["runs", "--output", "json"]).json();
    assert_eq!(runs[0]["state"], "running");
    machine.longshore(&["cancel", "last"]).expect(0);
}

#[test]
fn the_cluster_restarts() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("version", "1\n");
    let (_running, output) = dev(&machine, &["--", "sh", "-c", "cat version; exec sleep 300"]);
    output.see("| 1");
    machine.write("version", "2\n");
    output.see("| 2");
    let pid = machine.pid().unwrap();
    crate::machine::signal(pid, "KILL");
    machine.write("version", "3\n");
    eventually("the cluster starts", || {
        machine.longshore(&["up"]).code == 0
    });
    loop {
        let line = output.0.recv_timeout(TIMEOUT).unwrap();
        assert!(!line.ends_with("| 1"), "old code runs: {line}");
        if line.ends_with("| 3") {
            break;
        }
    }
    machine.write("version", "4\n");
    output.see("| 4");
}

#[test]
fn changed_settings_are_named_as_not_used() {
    for ignored in ["", "ignore = ['longshore.toml']\n"] {
        let machine = Machine::new();
        machine.longshore(&["up"]).expect(0);
        let settings = |text: &str| machine.write("longshore.toml", &format!("{ignored}{text}"));
        settings("command = ['sh', '-c', 'echo first; exec sleep 300']\n");
        let (mut running, output) = dev(&machine, &[]);
        output.see("| first");
        running.wait_for_error("restarts the command");
        // Neither a comment nor half a file is a change of the settings.
        settings("# Trains.\ncommand = ['sh', '-c', 'echo first; exec sleep 300']\n");
        settings("command = ['sh', '-c', 'echo sec");
        settings("command = ['sh', '-c', 'echo second; exec sleep 300']\n");
        running.wait_for_error(
            "`command` has changed in longshore.toml, but the run keeps its settings",
        );
        settings("command = ['sh', '-c', 'echo second; exec sleep 300']\n[env]\nEPOCHS = '3'\n");
        running.wait_for_error("`command`, `env` have changed in longshore.toml");
        let text = running.errors();
        assert_eq!(
            text.matches("but the run keeps its settings").count(),
            2,
            "{text}"
        );
        // The settings are the same as before: no warning follows.
        settings("command = ['sh', '-c', 'echo first; exec sleep 300']\n");
        running.signal("INT");
        running.end().expect(130);
        let (again, output) = dev(&machine, &[]);
        output.see("| first");
        again.signal("INT");
        again.end().expect(130);
    }
}

#[test]
fn keys_restart_and_end() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let word = unique_word();
    let script = format!("echo begun; exec sleep 300; : {word}");
    let command = machine.command(&["dev", "--", "sh", "-c", &script]);
    let mut terminal = Terminal::start(&command);
    terminal.wait_for("q ends the run");
    terminal.wait_for("| begun");
    // The task is connected before its command starts.
    terminal.write("r");
    terminal.wait_for("restarted in 0.");
    eventually("it has begun again", || {
        terminal.text().matches("| begun").count() == 2
    });
    terminal.write("q");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("was cancelled"), "{text}");
    machine.assert_no_process(&word);
}

#[test]
fn what_cannot_be_developed_is_refused() {
    let machine = Machine::new();
    machine.write("a", "");
    for (arguments, problem) in [
        (&["--no-code"][..], "the run has no code"),
        (&["--detach"], "leave out --detach"),
        (&["-i"], "leave out -i and -t"),
        (&["--sweep", "a=1,2"], "leave out --sweep"),
        (&["--cron", "0 3 * * *"], "leave out --cron"),
        (&["--grace", "2h"], "longer than 1h"),
    ] {
        let words = [&["dev"], arguments, &["--", "true"]].concat();
        let answer = machine.longshore(&words).expect(2);
        assert!(
            answer.err.contains(problem),
            "{arguments:?}: {}",
            answer.err
        );
    }
    // A task of `run` does not receive changes.
    let answer = machine.longshore(&["bootstrap", "receive"]);
    assert_eq!(answer.code, 125, "{}", answer.err);
    assert!(
        answer.err.contains("only tasks of `longshore dev` do"),
        "{}",
        answer.err
    );
}

#[test]
fn a_shell_has_the_environment_of_the_task() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("data.txt", "data\n");
    machine.write("longshore.toml", "[roles.worker]\ncount = 2\n");
    let words = ["run", "-d", "-e", "GREETING=hello", "--", "sleep", "300"];
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    eventually("both tasks run", || {
        let runs =
            |index| machine.longshore(&["exec", &format!("{run}/worker/{index}"), "--", "true"]);
        runs(0).code == 0 && runs(1).code == 0
    });
    // Without a terminal, commands come from stdin.
    let mut shell = machine.shell(&format!(
        "echo 'echo $LONGSHORE_ROLE/$LONGSHORE_INDEX $GREETING; cat data.txt; exit 5' | {} shell {run}/worker/1",
        env!("CARGO_BIN_EXE_longshore")
    ));
    let answer = crate::machine::Answer::new(&shell.output().unwrap()).expect(5);
    assert_eq!(answer.out, "worker/1 hello\ndata\n");
    // In a terminal; by default, the first task of the last run.
    let mut terminal = Terminal::start(&machine.command(&["shell"]));
    std::thread::sleep(Duration::from_millis(100));
    terminal.write("test -t 0 && echo task=$LONGSHORE_INDEX $(pwd | tail -c 5)\n");
    terminal.wait_for("task=0 work");
    terminal.write("exit 4\n");
    assert_eq!(terminal.end().0.code(), Some(4));
    machine.longshore(&["cancel", &run]).expect(0);
    let ended = machine.longshore(&["shell", &run]).expect(1);
    assert!(ended.err.contains("has ended (cancelled)"), "{}", ended.err);
    assert!(ended.err.contains("longshore logs"), "{}", ended.err);
    let none = machine.longshore(&["shell", "nothing"]).expect(1);
    assert!(
        none.err.contains("no run or pod \"nothing\""),
        "{}",
        none.err
    );
}
