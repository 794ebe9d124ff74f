//! Starts and stops the processes of the cluster, each with a log and a PID file.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};

use super::Paths;
use crate::run::Outcome;

/// The time between SIGTERM and SIGKILL.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Starts a process that keeps running after this program exits.
pub(super) fn start(paths: &Paths, name: &str, mut command: Command) -> Outcome {
    let log = paths.state("log").join(format!("{name}.log"));
    let open = || File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
    let (out, err) = (open()?, open()?);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    // In a separate process group, it does not receive signals of the terminal.
    command.process_group(0);
    let child = command
        .spawn()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    super::write(
        &paths.state(&format!("{name}.pid")),
        &child.id().to_string(),
    )
}

fn pid(paths: &Paths, name: &str) -> Option<Pid> {
    let text = fs::read_to_string(paths.state(&format!("{name}.pid"))).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

pub(super) fn is_running(paths: &Paths, name: &str) -> bool {
    pid(paths, name).is_some_and(is_there)
}

/// Returns true if the process exists and has not ended.
fn is_there(pid: Pid) -> bool {
    // A child of this process remains a zombie until it is reaped.
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    test_kill_process(pid).is_ok()
}

/// Stops a process and waits until it has exited.
pub(super) fn stop(paths: &Paths, name: &str) {
    let Some(pid) = pid(paths, name) else { return };
    let _ = kill_process(pid, Signal::TERM);
    let begin = Instant::now();
    while is_there(pid) {
        if begin.elapsed() > GRACE_PERIOD {
            let _ = kill_process(pid, Signal::KILL);
        }
        if begin.elapsed() > GRACE_PERIOD * 2 {
            return;
        }
        sleep(Duration::from_millis(50));
    }
}
