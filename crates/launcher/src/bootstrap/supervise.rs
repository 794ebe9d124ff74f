//! A good process 1: in a container nobody else reaps what is orphaned, and the
//! kernel keeps from it every signal that it does not ask for.

use std::{io, process::Command};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::Signals,
};

/// What is for the command. What the kernel sends for this process's own faults is
/// not, nor is what cannot be caught.
const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// Whether this process is the first of its container.
#[must_use]
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Runs a command to its end: forwards signals to it, reaps whatever is orphaned, and
/// tells the exit code; 128 and the signal's number for one that a signal ended.
///
/// # Errors
/// The command cannot be started, or not be waited for.
pub fn supervise(command: &mut Command) -> io::Result<i32> {
    // Caught before there is anything that they could be for.
    let mut signals = Signals::new(FORWARDED.into_iter().chain([SIGCHLD]))?;
    let child = command.spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let child = child.ok_or_else(|| io::Error::other("the command has no process id"))?;
    loop {
        for signal in signals.wait() {
            if signal != SIGCHLD {
                forward(child, signal);
            } else if let Some(code) = reap(child)? {
                return Ok(code);
            }
        }
    }
}

fn forward(child: Pid, signal: i32) {
    let known = Signal::from_named_raw(signal);
    // It may have ended a moment ago.
    let _ = known.map(|signal| kill_process(child, signal));
}

/// Takes all that have ended; one signal may stand for several of them.
fn reap(child: Pid) -> io::Result<Option<i32>> {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => {
                let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                code = status.exit_status().or(by_signal).or(code);
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(code),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
