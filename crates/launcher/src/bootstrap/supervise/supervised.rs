//! A running command.

use std::{
    io,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};

use super::is_terminating;

/// The minimum time between two resumptions of a command that stops repeatedly.
const RESUME_INTERVAL: Duration = Duration::from_millis(50);

/// The command, while it runs.
pub(super) struct Supervised {
    child: Pid,
    own_group: bool,
    has_terminal: bool,
    is_stopped: bool,
    /// When it was resumed last.
    resumed: Option<Instant>,
}

impl Supervised {
    pub(super) fn new(child: Pid, own_group: bool, has_terminal: bool) -> Self {
        Self {
            child,
            own_group,
            has_terminal,
            is_stopped: false,
            resumed: None,
        }
    }

    pub(super) fn child(&self) -> Pid {
        self.child
    }

    pub(super) fn forward(&mut self, signal: i32) {
        let known = Signal::from_named_raw(signal);
        // The command may have just ended.
        let _ = known.map(|signal| kill_process(self.child, signal));
        if is_terminating(signal) {
            self.resume_if_stopped();
        }
    }

    /// A stopped process receives only SIGCONT and SIGKILL.
    pub(super) fn resume_if_stopped(&mut self) {
        if self.is_stopped {
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
        let _ = match self.own_group {
            true => kill_process_group(self.child, Signal::CONT),
            false => kill_process(self.child, Signal::CONT),
        };
    }
}

/// Reaps all ended processes and checks whether the command has stopped. Returns its exit code,
/// if it has ended. One SIGCHLD can stand for several processes.
pub(super) fn reap(mut running: Option<&mut Supervised>) -> io::Result<Option<i32>> {
    let mut code = None;
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
            Ok(Some((pid, status))) => {
                let own = running.as_deref_mut().filter(|own| own.child == pid);
                let Some(own) = own else { continue };
                if status.continued() {
                    own.is_stopped = false;
                } else if let Some(signal) = status.stopping_signal() {
                    own.is_stopped = true;
                    let by_terminal = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
                    if own.has_terminal && by_terminal.map(Signal::as_raw).contains(&signal) {
                        own.resume();
                    }
                }
                let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                code = status.exit_status().or(by_signal).or(code);
            }
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(code),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
