//! Tests the filter for text that tasks and objects write to the user's terminal.

use std::{
    fs::File,
    io::Read as _,
    os::fd::OwnedFd,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::Value;

use crate::machine::{Machine, Running, eventually};

/// Control sequences for a terminal, with text between them.
const SEQUENCES: &str =
    r"\033[2J\033[Hclear \033]0;title\007\033]52;c;ZXZpbA==\007clip \033[1A\007up \033[31mred\n";
/// The text that remains after filtering.
const LEFT: &str = "clear clip up \x1b[31mred\x1b[0m";

/// A pseudoterminal and what was written to it.
struct Pty {
    side: OwnedFd,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Pty {
    fn open() -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let side = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&side, size).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let writing = seen.clone();
        std::thread::spawn(move || {
            let (mut main, mut buffer) = (File::from(main), [0; 4096]);
            // Reading fails when the other side is closed.
            while let Ok(length @ 1..) = main.read(&mut buffer) {
                writing.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { side, seen }
    }

    fn end(&self) -> Stdio {
        Stdio::from(self.side.try_clone().unwrap())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }
}

fn task(machine: &Machine, script: &str) -> Command {
    machine.command(&["run", "--name", "job", "--", "sh", "-c", script])
}

#[test]
fn control_sequences_of_a_task_are_removed() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = format!("printf '{SEQUENCES}'; printf ' 1%%\\r50%%\\rdone\\n'");
    // Filtered for a pipe as well: `| less -R` and `| head` print to a terminal later.
    let piped = machine.run_script(&script).expect(0);
    assert_eq!(piped.out, format!("main/0 | {LEFT}\nmain/0 | done\n"));
    let run = machine.longshore(&["runs", "--output", "name"]).out;
    let logs = machine.longshore(&["logs", run.trim()]).expect(0);
    assert_eq!(logs.out, piped.out);

    let pty = Pty::open();
    let mut command = task(&machine, &script);
    let status = command.env("NO_COLOR", "1").stdout(pty.end()).status();
    assert!(status.unwrap().success());
    let expected = format!("main/0 | {LEFT}\r\nmain/0 | done\r\n");
    eventually("the lines are shown", || pty.text() == expected);

    // The log of a pod: byte for byte to a pipe, filtered to a terminal.
    let pods = machine.longshore(&["get", "pods", "--output", "name"]).out;
    let pod = pods.lines().next().unwrap();
    let raw = machine.longshore(&["logs", pod]).expect(0);
    assert!(raw.out.contains("\x1b]52;c;ZXZpbA==\x07"), "{:?}", raw.out);
    let pty = Pty::open();
    let mut command = machine.command(&["logs", pod]);
    assert!(command.stdout(pty.end()).status().unwrap().success());
    eventually("the log is shown", || pty.text().contains("done"));
    let shown = pty.text();
    for sequence in ["\x1b[2J", "\x1b[H", "\x1b]", "\x1b[1A", "\x07"] {
        assert!(!shown.contains(sequence), "{shown:?}");
    }
    assert!(shown.contains("\x1b[31mred"), "{shown:?}");
}

#[test]
fn json_has_a_tasks_bytes_and_timestamps() {
    let machine = Machine::new();
    let script = format!("printf '{SEQUENCES}'; printf '\\302\\2332J\\n'");
    let words = ["run", "--output", "json", "--", "sh", "-c", &script];
    let printed = machine.longshore(&words).expect(0).out;
    assert!(
        !printed.chars().any(|c| c.is_control() && c != '\n'),
        "{printed:?}"
    );
    let events = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let logs: Vec<Value> = events
        .filter(|event: &Value| event["event"] == "log")
        .collect();
    assert!(
        logs[0]["line"]
            .as_str()
            .unwrap()
            .starts_with("\x1b[2J\x1b[Hclear")
    );
    assert_eq!(logs[1]["line"], "\u{9b}2J");
    let times: Vec<jiff::Timestamp> = logs
        .iter()
        .map(|log| log["time"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn control_sequences_in_objects_are_removed() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let hostile = "\x1b[2J\x1b]52;c;ZXZpbA==\x07";
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "hostile", "namespace": "default", "annotations": {"note": hostile}},
        "spec": {"nodeName": "elsewhere", "containers": [{"name": "main", "image": hostile}]},
    });
    let event = serde_json::json!({
        "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Odd", "message": hostile,
        "metadata": {"name": "odd", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "hostile", "namespace": "default"},
    });
    for (file, object) in [("pod.json", pod), ("event.json", event)] {
        machine.write(file, &object.to_string());
        machine.longshore(&["create", "-f", file]).expect(0);
    }
    for words in [
        &["describe", "pod", "hostile"][..],
        &["get", "pods", "--output", "wide"],
        &["get", "events"],
        &["get", "pod", "hostile", "--output", "yaml"],
        &["get", "pod", "hostile", "--output", "json"],
        &["get", "pod", "\x1b[2Jnone"],
        &["why", "\x1b[2Jnone"],
    ] {
        let answer = machine.longshore(words);
        for text in [&answer.out, &answer.err] {
            let acts = text.chars().any(|c| c.is_control() && c != '\n');
            assert!(!acts, "{words:?}: {text:?}");
        }
    }
    let described = machine.longshore(&["describe", "pod", "hostile"]).expect(0);
    assert!(described.out.contains("^[[2J^[]52"), "{}", described.out);
}

#[test]
fn a_progress_bar_is_shown_before_its_line_ends() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let end = machine.code().join("end");
    let script = format!(
        "printf ' 10%%\\r'; printf ' 42%%\\r'; while ! test -e {}; do sleep 0.05; done; echo 100%",
        end.display()
    );
    let pty = Pty::open();
    let mut command = task(&machine, &script);
    command.env("NO_COLOR", "1").env("TERM", "xterm");
    let mut child = command.stdout(pty.end()).stderr(pty.end()).spawn().unwrap();
    eventually("the bar is shown", || pty.text().contains("main/0 |  42%"));
    std::fs::write(&end, "").unwrap();
    assert!(child.wait().unwrap().success());
    // Some characters of the bar remain: the next line overwrote it.
    eventually("the line is shown", || {
        pty.text().contains("main/0 | 100%\r\n")
    });
}

#[test]
fn ctrl_c_clears_the_spinner_before_it_asks() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let pty = Pty::open();
    let script = "trap '' INT; echo up; sleep 300";
    let mut command = task(&machine, script);
    command.env("TERM", "xterm");
    command.stdin(pty.end()).stdout(pty.end()).stderr(pty.end());
    let mut child = command.spawn().unwrap();
    eventually("it runs", || pty.text().contains("| up"));
    eventually("the spinner turns", || pty.text().contains("1 running"));
    let pid = i32::try_from(child.id()).unwrap();
    crate::machine::signal(pid, "INT");
    eventually("it asks", || pty.text().contains("Detach (d)"));
    // The spinner does not draw over the question, and the line above it is empty.
    let text = pty.text();
    let (before, after) = text.split_once("\r\nDetach (d)").unwrap();
    let line = before.rsplit("\r\n").next().unwrap();
    assert!(
        line.ends_with("\x1b[2K") || !line.contains("running"),
        "{line:?}"
    );
    assert!(!after.contains("running"), "{after:?}");
    crate::machine::signal(pid, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// While standard output is blocked, the follower keeps following, and Ctrl-C works.
#[test]
fn a_blocked_reader_loses_nothing_and_can_be_interrupted() {
    const LINES: usize = 20_000;
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = format!("i=0; while test $i -lt {LINES}; do echo \"line $i\"; i=$((i+1)); done");
    let mut running = Running::start(task(&machine, &script));
    let mut out = running.output();
    // The run ends while nothing reads the output.
    eventually("the run ends", || {
        let runs = machine.longshore(&["runs", "--output", "json"]).json();
        runs[0]["state"] == "succeeded"
    });
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    running.end().expect(0);
    let expected = (0..LINES).map(|n| format!("main/0 | line {n}"));
    assert!(text.lines().eq(expected), "{} lines", text.lines().count());

    // More output than fits into all buffers between the task and the blocked reader.
    let script = "yes 'on and on' | head -n 2000000; exec sleep 1000";
    let mut running = Running::start(task(&machine, script));
    let _unread = running.output();
    let any_is = |state: &str| {
        let runs = machine.longshore(&["runs", "--output", "json"]).json();
        let runs = runs.as_array().unwrap();
        runs.iter().any(|run| run["state"] == state)
    };
    eventually("the run exists", || any_is("running"));
    // Long enough to fill the buffers.
    std::thread::sleep(Duration::from_secs(1));
    running.signal("INT");
    // Signals in quick succession may be merged into one.
    eventually("the run is cancelled", || any_is("cancelled"));
    running.signal("INT");
    running.end().expect(130);
}

#[test]
fn reports_about_the_end_of_a_run_are_true() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    // `attach` after the end reports how long the run took, not how long it was attached.
    let words = ["run", "--detach", "--", "sh", "-c", "sleep 2"];
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    eventually("it ends", || {
        let runs = machine.longshore(&["runs", "--output", "json"]).json();
        runs[0]["state"] == "succeeded"
    });
    let attached = machine.longshore(&["attach", &run]).expect(0);
    let (_, after) = attached.err.rsplit_once(" after ").unwrap();
    let seconds: u64 = after.trim().trim_end_matches('s').parse().unwrap();
    assert!(seconds >= 2, "{}", attached.err);
    let table = machine.longshore(&["runs"]).expect(0).out;
    assert!(table.trim_end().ends_with(after.trim()), "{table} {after}");

    // The message does not point to a log that was just printed.
    let failed = machine.run_script("echo why; exit 3").expect(3);
    assert!(!failed.err.contains("hint:"), "{}", failed.err);

    // A retry is reported with its reason.
    let words = ["run", "--retries", "1", "--", "sh", "-c", "exit 3"];
    let retried = machine.longshore(&words).expect(3);
    let retry = "main/0: its command ended with exit code 3; attempt 1 of 2";
    assert!(retried.err.contains(retry), "{}", retried.err);
}

#[test]
fn a_run_that_preflight_rejects_prints_json() {
    let machine = Machine::new();
    let words = [
        "run", "--output", "json", "--memory", "9999Ti", "--", "true",
    ];
    let refused = machine.longshore(&words).expect(4);
    let last: Value = serde_json::from_str(refused.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["event"], "finished");
    assert_eq!(
        (&last["ending"], &last["exitCode"]),
        (&"notStarted".into(), &4.into())
    );
    let said = format!("{} {}", last["reason"], last["details"]);
    assert!(said.contains("it fits on no node"), "{said}");
}
