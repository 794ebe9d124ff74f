//! The duties of process 1 of a container: it must reap orphaned processes, and the kernel
//! delivers only signals that it handles.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::Signals,
};

use super::terminal;
use longshore_diagnosis::names;

/// The signals to forward to the command: not those that the kernel sends for faults of
/// this process, nor those that cannot be caught.
const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// The minimum time between two resumptions of a command that stops repeatedly.
const RESUME_INTERVAL: Duration = Duration::from_millis(50);

/// Whether this process is the first process of its container.
#[must_use]
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Whether this process supervises the command: as the first process of its container, or in a
/// container of the embedded cluster, whose first process is the node's, and which has no
/// terminal that the command would have to be given.
pub(super) fn is_needed() -> bool {
    is_first() || is_embedded() && !terminal::is_there()
}

/// Whether this is a container of the embedded cluster with processes of its own.
fn is_embedded() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    let has_proc =
        own.is_some_and(|own| own.as_os_str() == std::process::id().to_string().as_str());
    has_proc && Path::new(names::TERMINATION_FILE).is_file()
}

/// Whether all processes in `/proc` belong to this container.
pub(super) fn has_namespace() -> bool {
    is_first() || is_embedded()
}

/// Runs a command to its end: forwards signals, reaps orphaned processes, and returns the
/// exit code; 128 plus the signal number if a signal terminated the command.
///
/// No shell can resume a stopped command. Therefore, with a terminal, a command that Ctrl-Z
/// stops, or that loses the terminal to another process, is resumed at once. A command that
/// stops itself with SIGSTOP stays stopped until it receives a terminating signal.
///
/// # Errors
/// The command cannot be started or waited for.
pub fn supervise(command: &mut Command) -> io::Result<i32> {
    // Install the handlers before the command starts.
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
        // The command may have just ended.
        let _ = known.map(|signal| kill_process(self.child, signal));
        let ends = matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM);
        if self.is_stopped && ends {
            // A stopped process receives only SIGCONT and SIGKILL.
            self.resume();
        }
    }

    /// Resumes the command's process group.
    fn resume(&mut self) {
        let pause = self.resumed.map(|at| at + RESUME_INTERVAL);
        let pause = pause.map(|until| until.saturating_duration_since(Instant::now()));
        std::thread::sleep(pause.unwrap_or_default());
        self.resumed = Some(Instant::now());
        self.is_stopped = false;
        // The command has its own process group only with a terminal.
        let _ = match self.has_terminal {
            true => kill_process_group(self.child, Signal::CONT),
            false => kill_process(self.child, Signal::CONT),
        };
    }

    /// Reaps all ended processes and checks whether the command has stopped. One SIGCHLD can
    /// stand for several processes.
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
