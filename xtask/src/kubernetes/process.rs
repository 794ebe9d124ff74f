//! The cluster's processes, each with a log and a file with its process id.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};

use super::Places;
use crate::run::Outcome;

/// How long a process may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Starts one in a session of its own; it outlives this program.
pub(super) fn start(places: &Places, name: &str, mut command: Command) -> Outcome {
    let log = places.state("log").join(format!("{name}.log"));
    let open = || File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
    let (out, err) = (open()?, open()?);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    // Ctrl-C and the terminal's end are not for it.
    command.process_group(0);
    let child = command
        .spawn()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    super::write(
        &places.state(&format!("{name}.pid")),
        &child.id().to_string(),
    )
}

fn pid(places: &Places, name: &str) -> Option<Pid> {
    let text = fs::read_to_string(places.state(&format!("{name}.pid"))).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

pub(super) fn is_running(places: &Places, name: &str) -> bool {
    pid(places, name).is_some_and(is_there)
}

/// Whether the process exists and has not ended.
fn is_there(pid: Pid) -> bool {
    // A child of this process stays a zombie until it is waited for; others are no children.
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    test_kill_process(pid).is_ok()
}

/// Ends one, and waits for its end.
pub(super) fn stop(places: &Places, name: &str) {
    let Some(pid) = pid(places, name) else { return };
    let _ = kill_process(pid, Signal::TERM);
    let begin = Instant::now();
    while is_there(pid) {
        if begin.elapsed() > GRACE {
            let _ = kill_process(pid, Signal::KILL);
        }
        if begin.elapsed() > GRACE * 2 {
            return;
        }
        sleep(Duration::from_millis(50));
    }
}
