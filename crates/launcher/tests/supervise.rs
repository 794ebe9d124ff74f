//! The first process of a container: signals reach the command, its exit code comes
//! back, and nothing that has ended stays.
#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use longshore_launcher::bootstrap::supervise::supervise;
use rustix::process::{Pid, Signal, kill_process, set_child_subreaper};

const SCRIPT: &str = "LONGSHORE_TEST_SUPERVISED";

/// What the others start: a process that supervises a script, as process 1 would.
#[test]
#[ignore = "the other tests start it"]
fn supervisor() {
    let Some(script) = env::var_os(SCRIPT) else {
        return;
    };
    // Orphans come to it, as they come to process 1.
    set_child_subreaper(Pid::from_raw(1)).unwrap();
    let mut command = Command::new("sh");
    let code = supervise(command.arg("-c").arg(script)).unwrap();
    std::process::exit(code);
}

/// The supervisor with a script, when the script has said its first line.
fn started(script: &str) -> (Child, String, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "supervisor",
            "--exact",
            "--ignored",
            "--nocapture",
            "--quiet",
        ])
        .env(SCRIPT, script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    // The harness says something, too.
    while !line.starts_with("script: ") {
        line.clear();
        assert!(
            said.read_line(&mut line).unwrap() > 0,
            "the script says nothing"
        );
    }
    let line = line.trim_start_matches("script: ").trim().to_owned();
    (child, line, said)
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn exit_codes_come_back() {
    let code = |script: &str| started(script).0.wait().unwrap().code();
    assert_eq!(code("echo script: a; exit 7"), Some(7));
    assert_eq!(code("echo script: a"), Some(0));
    assert_eq!(code("echo script: a; kill -KILL $$"), Some(137));
}

#[test]
fn signals_reach_the_command() {
    let script =
        "trap 'exit 9' TERM; trap 'echo hup' HUP; echo script: a; while :; do sleep 0.05; done";
    let (mut child, _, mut said) = started(script);
    send(&child, Signal::HUP);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "hup\n");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(9));
    // Without a handler of its own, it ends by the signal.
    let (mut child, ..) = started("echo script: a; exec sleep 60");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn orphans_are_reaped() {
    // The inner shell ends at once, and leaves a process that ends soon.
    let script = "sh -c 'sleep 0.1 & echo script: $!'; sleep 1; exit 3";
    let (mut child, orphan, _said) = started(script);
    let state = || fs::read_to_string(format!("/proc/{orphan}/stat"));
    let begin = std::time::Instant::now();
    while state().is_ok() {
        assert!(
            begin.elapsed().as_millis() < 900,
            "still there: {:?}",
            state()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_command_that_is_not_there() {
    let error = supervise(&mut Command::new("/nonexistent/command")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
