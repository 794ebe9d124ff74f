//! The first process of a container: it forwards signals to the command, returns its exit
//! code, and reaps every process that has ended.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use longshore_launcher::bootstrap::supervise::supervise;
use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process, set_child_subreaper},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

const SCRIPT: &str = "LONGSHORE_TEST_SUPERVISED";

/// Started by the other tests: a process that supervises a script, as process 1 does.
#[test]
#[ignore = "the other tests start it"]
fn supervisor() {
    let Some(script) = env::var_os(SCRIPT) else {
        return;
    };
    // Orphans become children of this process, as they become children of process 1.
    set_child_subreaper(Pid::from_raw(1)).unwrap();
    let mut command = Command::new("sh");
    let code = supervise(command.arg("-c").arg(script)).unwrap();
    std::process::exit(code);
}

/// The supervisor with a script, after the script has printed its first line.
fn started(script: &str) -> (Child, String, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "supervise::supervisor",
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
    // The test harness also prints lines.
    while !line.starts_with("script: ") {
        line.clear();
        assert!(
            said.read_line(&mut line).unwrap() > 0,
            "the script prints nothing"
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
fn exit_codes_are_returned() {
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
    // Without its own handler, the command is terminated by the signal.
    let (mut child, ..) = started("echo script: a; exec sleep 60");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// A program that saves its state when it receives SIGTERM, with the help of a worker.
const PROGRAM: &str = r"
import signal, subprocess, sys, time
worker = subprocess.Popen(['sleep', '60'], stdin=subprocess.DEVNULL)
signals = 0
def save(*_):
    global signals
    signals += 1
signal.signal(signal.SIGTERM, save)
print('script: ready', flush=True)
while not signals:
    time.sleep(0.05)
time.sleep(0.5)
print('program:', signals, worker.poll(), flush=True)
worker.kill()
sys.exit(7)
";

#[test]
fn the_program_gets_sigterm_once_and_time_to_end_however_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.py");
    fs::write(&path, PROGRAM).unwrap();
    // The exit code, and the lines after the program's lines.
    let cases = [
        ("exec P", 7, ""),
        ("P", 143, ""),
        ("P; echo next", 143, ""),
        ("P & wait", 143, ""),
        ("(P); echo next", 143, ""),
        ("P 2>&1 | cat; echo next", 143, ""),
        ("sh -c 'P; echo inner'; echo next", 143, ""),
        ("env A=b nice P; echo next", 143, ""),
        ("trap 'echo trap; exit 9' TERM; P; echo next", 9, "trap\n"),
        ("trap '' TERM; P; echo next; exit 3", 3, "next\n"),
        // Scripts that forward the signal.
        ("trap 'kill -TERM $!' TERM; P & wait $!; wait $!", 7, ""),
        ("trap 'kill -TERM $!; exit 9' TERM; P & wait", 9, ""),
        // A script that does not forward the signal.
        ("trap 'exit 9' TERM; P & wait", 9, ""),
    ];
    let run = |(script, code, rest): &(&str, i32, &str)| {
        let script = script.replace('P', &format!("python3 {}", path.display()));
        let (mut child, _, mut output) = started(&script);
        send(&child, Signal::TERM);
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert_eq!(text, format!("program: 1 None\n{rest}"), "{script}");
        assert_eq!(child.wait().unwrap().code(), Some(*code), "{script}");
    };
    thread::scope(|scope| {
        for case in &cases {
            scope.spawn(move || run(case));
        }
    });
}

#[test]
fn a_signal_that_only_informs_reaches_the_program_and_does_not_end_its_shell() {
    let program = "import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))
print('script: ready', flush=True)
time.sleep(60)";
    let (mut child, ..) = started(&format!("python3 -c \"{program}\"; exit $?"));
    send(&child, Signal::USR1);
    assert_eq!(code_of(&mut child), 5);
}

#[test]
fn orphans_are_reaped() {
    // The inner shell ends immediately, and leaves a process that ends soon.
    let script = "sh -c 'sleep 0.1 & echo script: $!'; sleep 1; exit 3";
    let (mut child, orphan, _said) = started(script);
    let state = || fs::read_to_string(format!("/proc/{orphan}/stat"));
    let begin = std::time::Instant::now();
    while state().is_ok() {
        assert!(
            begin.elapsed().as_millis() < 900,
            "processes still run: {:?}",
            state()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_missing_command() {
    let error = supervise(&mut Command::new("/nonexistent/command")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_stopped_command_receives_sigterm() {
    let script = "trap 'exit 9' TERM; echo script: a; kill -STOP $$; while :; do sleep 0.05; done";
    let (mut child, ..) = started(script);
    // Until the command has stopped.
    thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    send(&child, Signal::TERM);
    assert_eq!(code_of(&mut child), 9);
}

/// The exit code. Fails the test after a generous timeout.
fn code_of(child: &mut Child) -> i32 {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap();
        }
        if begin.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("the supervisor does not end");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// A supervisor that leads a session with a terminal, and the terminal's user side.
struct AtTerminal {
    child: Child,
    main: OwnedFd,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl AtTerminal {
    fn start(script: &str) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let side = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let end = || Stdio::from(side.try_clone().unwrap());
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(env::current_exe().unwrap())
            .args([
                "supervise::supervisor",
                "--exact",
                "--ignored",
                "--nocapture",
                "--quiet",
            ])
            .env(SCRIPT, script)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        thread::spawn({
            let (seen, mut main) = (seen.clone(), File::from(main.try_clone().unwrap()));
            move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = main.read(&mut buffer) {
                    seen.lock().unwrap().extend_from_slice(&buffer[..length]);
                }
            }
        });
        let terminal = Self { child, main, seen };
        terminal.until("script: ready");
        terminal
    }

    fn until(&self, text: &str) {
        let begin = Instant::now();
        loop {
            let seen = String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned();
            if seen.contains(text) {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{text}: {seen}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn write(&self, keys: &[u8]) {
        let mut main = File::from(self.main.try_clone().unwrap());
        main.write_all(keys).unwrap();
    }
}

#[test]
fn ctrl_z_stops_no_process_forever() {
    let mut terminal = AtTerminal::start("echo script: ready; read x; echo got $x; exit 4");
    for _ in 0..3 {
        terminal.write(b"\x1a");
        thread::sleep(Duration::from_millis(100));
    }
    terminal.write(b"word\n");
    terminal.until("got word");
    assert_eq!(code_of(&mut terminal.child), 4);
}

#[test]
fn ctrl_c_and_a_new_size_reach_the_command_once() {
    let script = "trap 'echo interrupted' INT; trap 'echo resized' WINCH; echo script: ready; \
                  while :; do sleep 0.05; done";
    let mut terminal = AtTerminal::start(script);
    terminal.write(b"\x03");
    terminal.until("interrupted");
    let size = Winsize {
        ws_row: 7,
        ws_col: 33,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&terminal.main, size).unwrap();
    terminal.until("resized");
    thread::sleep(Duration::from_millis(200));
    let seen = String::from_utf8_lossy(&terminal.seen.lock().unwrap()).into_owned();
    assert_eq!(seen.matches("interrupted").count(), 1, "{seen}");
    assert_eq!(seen.matches("resized").count(), 1, "{seen}");
    send(&terminal.child, Signal::TERM);
    assert_eq!(code_of(&mut terminal.child), 143);
}

/// A child takes the terminal, ignores stop signals, and stops its parents.
#[test]
fn a_hostile_child_does_not_delay_the_end() {
    let steal = "import os, signal, time
for one in (signal.SIGTTOU, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTSTP):
    signal.signal(one, signal.SIG_IGN)
os.setpgid(0, 0)
os.tcsetpgrp(1, os.getpid())
print('script: ready', flush=True)
time.sleep(5)";
    // The command reads from a terminal that it no longer controls.
    let script = format!("python3 -c \"{steal}\" & sleep 0.5; read x; sleep 1000");
    let mut terminal = AtTerminal::start(&script);
    thread::sleep(Duration::from_millis(800));
    send(&terminal.child, Signal::TERM);
    assert_eq!(code_of(&mut terminal.child), 143);

    // A child that stops the command for good and closes the terminal.
    let script =
        "exec 3>&1; echo script: ready; exec 0<&- 1>&- 2>&- 3>&-; kill -STOP $$; sleep 1000";
    let mut terminal = AtTerminal::start(script);
    thread::sleep(Duration::from_millis(300));
    send(&terminal.child, Signal::TERM);
    assert_eq!(code_of(&mut terminal.child), 143);
}
