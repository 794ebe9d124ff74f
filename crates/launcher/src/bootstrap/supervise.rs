//! A good process 1: in a container nobody else reaps what is orphaned, and the
//! kernel keeps from it every signal that it does not ask for.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::Signals,
};

use super::terminal;

/// What is for the command. What the kernel sends for this process's own faults is
/// not, nor is what cannot be caught.
const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// The least time between two resumptions of a command that stops again and again.
const RESUME_INTERVAL: Duration = Duration::from_millis(50);

/// Whether this process is the first of its container.
#[must_use]
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Runs a command to its end: forwards signals to it, reaps whatever is orphaned, and
/// tells the exit code; 128 and the signal's number for one that a signal ended.
///
/// There is no shell that would bring a stopped command back: with a terminal, a command
/// that Ctrl-Z stops, or that another process has taken the terminal from, goes on at
/// once. One that stops itself by SIGSTOP stays stopped until it is signalled to end.
///
/// # Errors
/// The command cannot be started, or not be waited for.
pub fn supervise(command: &mut Command) -> io::Result<i32> {
    // Caught before there is anything that they could be for.
    let mut signals = Signals::new(FORWARDED.into_iter().chain([SIGCHLD]))?;
    let has_terminal = terminal::is_there();
    if has_terminal {
        command.process_group(0);
    }
    let child = command.spawn()?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let child = child.ok_or_else(|| io::Error::other("the command has no process id"))?;
    if has_terminal {
        terminal::give(child);
    }
    let mut command = Supervised {
        child,
        has_terminal,
        is_stopped: false,
        resumed: None,
    };
    loop {
        for signal in signals.wait() {
            if signal != SIGCHLD {
                command.forward(signal);
            } else if let Some(code) = command.reap()? {
                return Ok(code);
            }
        }
    }
}

/// The command, while it runs.
struct Supervised {
    child: Pid,
    has_terminal: bool,
    is_stopped: bool,
    /// When it was resumed last.
    resumed: Option<Instant>,
}

impl Supervised {
    fn forward(&mut self, signal: i32) {
        let known = Signal::from_named_raw(signal);
        // It may have ended a moment ago.
        let _ = known.map(|signal| kill_process(self.child, signal));
        let ends = matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM);
        if self.is_stopped && ends {
            // A stopped process gets no signal but this one and SIGKILL.
            self.resume();
        }
    }

    /// Lets the command's process group go on.
    fn resume(&mut self) {
        let pause = self.resumed.map(|at| at + RESUME_INTERVAL);
        let pause = pause.map(|until| until.saturating_duration_since(Instant::now()));
        std::thread::sleep(pause.unwrap_or_default());
        self.resumed = Some(Instant::now());
        self.is_stopped = false;
        // Of its own only where there is a terminal.
        let _ = match self.has_terminal {
            true => kill_process_group(self.child, Signal::CONT),
            false => kill_process(self.child, Signal::CONT),
        };
    }

    /// Takes all that have ended, and sees whether the command has stopped; one signal
    /// may stand for several of them.
    fn reap(&mut self) -> io::Result<Option<i32>> {
        let mut code = None;
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
                Ok(Some((pid, status))) if pid == self.child => {
                    if status.continued() {
                        self.is_stopped = false;
                    } else if let Some(signal) = status.stopping_signal() {
                        self.is_stopped = true;
                        let by_terminal = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
                        if self.has_terminal && by_terminal.map(Signal::as_raw).contains(&signal) {
                            self.resume();
                        }
                    }
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
}
