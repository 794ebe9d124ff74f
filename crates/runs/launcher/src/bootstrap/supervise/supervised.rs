//! A running command: its signals, and its end.

use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use super::{
    is_terminating, leftovers,
    processes::{ProcessId, Processes},
    recipients::{Intent, recipients},
};

/// The minimum time between two resumptions of a command that stops repeatedly.
const RESUME_INTERVAL: Duration = Duration::from_millis(50);
/// The time for processes to end by themselves after a command that has handled the signal. The
/// command may have forwarded the signal to them.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// The command, until it and the processes that share its end have ended.
pub(super) struct Supervised {
    child: Pid,
    has_terminal: bool,
    is_stopped: bool,
    /// The time when the command was resumed last.
    resumed: Option<Instant>,
    /// The last signal that asked the command to end.
    ending: Option<i32>,
    /// The processes that have received the signal.
    signaled: BTreeSet<ProcessId>,
    is_killed: bool,
    ended: Option<Ended>,
}

/// The end of the command's own process.
#[derive(Debug, Clone, Copy)]
struct Ended {
    code: i32,
    at: Instant,
    /// True if the command did not handle the signal that asked it to end.
    by_signal: bool,
}

impl Supervised {
    pub(super) fn new(child: Pid, has_terminal: bool) -> Self {
        Self {
            child,
            has_terminal,
            is_stopped: false,
            resumed: None,
            ending: None,
            signaled: BTreeSet::new(),
            is_killed: false,
            ended: None,
        }
    }

    /// Forwards a signal that this process has received.
    pub(super) fn forward(&mut self, signal: i32) {
        match is_terminating(signal) {
            true => self.end(signal),
            false => self.notify(signal),
        }
    }

    /// Asks the command to end.
    pub(super) fn end(&mut self, signal: i32) {
        self.ending = Some(signal);
        match Processes::below_this() {
            Some(processes) => {
                let roots = self.roots(&processes);
                let signaled = recipients(&processes, roots, signal, Intent::End);
                self.deliver(&processes, &signaled, signal);
            }
            None => send_to_group(self.child, signal),
        }
        if self.is_stopped {
            self.resume();
        }
    }

    /// Notifies the command. If no process handles the signal, its default action applies.
    pub(super) fn notify(&mut self, signal: i32) {
        let processes = Processes::below_this().unwrap_or_default();
        let roots = self.roots(&processes);
        let signaled = recipients(&processes, roots, signal, Intent::Notify);
        match signaled.is_empty() && self.ended.is_none() {
            true => send(self.child.as_raw_nonzero().get(), signal),
            false => signaled.into_iter().for_each(|pid| send(pid, signal)),
        }
    }

    /// Kills the command and all processes that it has started. The end is reported as usual.
    pub(super) fn kill(&mut self) {
        self.is_killed = true;
        let _ = kill_process_group(self.child, Signal::KILL);
        Processes::below_this()
            .unwrap_or_default()
            .signal(Signal::KILL);
    }

    /// The top processes of the command: its own process, or its remaining processes.
    fn roots(&self, processes: &Processes) -> Vec<i32> {
        match self.ended {
            None => vec![self.child.as_raw_nonzero().get()],
            Some(_) => processes
                .children(getpid().as_raw_nonzero().get())
                .collect(),
        }
    }

    fn deliver(&mut self, processes: &Processes, signaled: &[i32], signal: i32) {
        for pid in signaled {
            send(*pid, signal);
            // A stopped process receives only SIGCONT and SIGKILL.
            if processes.0[pid].is_stopped {
                send(*pid, Signal::CONT.as_raw());
            }
            self.signaled.extend(processes.id(*pid));
        }
    }

    /// The exit code, once the command has ended. After a signal, waits also for its remaining
    /// processes, which would otherwise be killed with the container.
    pub(super) fn finish(&mut self) -> Option<i32> {
        let ended = self.ended?;
        // With a terminal, Ctrl-C has reached all processes.
        let interrupted = self.has_terminal && ended.by_signal && is_terminating(ended.code - 128);
        if self.is_killed {
            leftovers::kill_all();
            return Some(ended.code);
        }
        let Some(signal) = self.ending.or(interrupted.then_some(ended.code - 128)) else {
            return Some(ended.code);
        };
        let processes = Processes::below_this().unwrap_or_default();
        let shares_end = |pid: &i32| {
            let was_signaled = processes
                .id(*pid)
                .is_some_and(|id| self.signaled.contains(&id));
            let waits = self.ending.is_some() && ended.by_signal;
            was_signaled || waits || !processes.0[pid].ignores(signal)
        };
        let left: Vec<i32> = self
            .roots(&processes)
            .into_iter()
            .filter(shares_end)
            .collect();
        if left.is_empty() {
            leftovers::kill_all();
            return Some(ended.code);
        }
        let is_settled = ended.by_signal || ended.at.elapsed() >= SETTLE_TIME;
        if self.ending.is_some() && is_settled {
            let is_new = |pid: &i32| {
                processes
                    .id(*pid)
                    .is_some_and(|id| !self.signaled.contains(&id))
            };
            let new: Vec<i32> = left.into_iter().filter(is_new).collect();
            let signaled = recipients(&processes, new, signal, Intent::End);
            self.deliver(&processes, &signaled, signal);
        }
        None
    }

    /// Returns true while remaining processes of the command are waited for.
    pub(super) fn is_finishing(&self) -> bool {
        self.ended.is_some()
    }

    /// Resumes the command's process group.
    fn resume(&mut self) {
        let pause = self.resumed.map(|at| at + RESUME_INTERVAL);
        let pause = pause.map(|until| until.saturating_duration_since(Instant::now()));
        std::thread::sleep(pause.unwrap_or_default());
        self.resumed = Some(Instant::now());
        self.is_stopped = false;
        let _ = kill_process_group(self.child, Signal::CONT);
    }
}

fn send(pid: i32, signal: i32) {
    if let (Some(pid), Some(signal)) = (Pid::from_raw(pid), Signal::from_named_raw(signal)) {
        // The process may have just ended.
        let _ = kill_process(pid, signal);
    }
}

fn send_to_group(leader: Pid, signal: i32) {
    let known = Signal::from_named_raw(signal);
    let _ = known.map(|signal| kill_process_group(leader, signal));
}

/// Reaps all ended processes and checks if the command has stopped or ended. One SIGCHLD may stand
/// for several processes.
pub(super) fn reap(mut running: Option<&mut Supervised>) -> io::Result<()> {
    loop {
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
            Ok(Some((pid, status))) => {
                let is_own = |own: &&mut Supervised| own.child == pid && own.ended.is_none();
                let own = running.as_deref_mut().filter(is_own);
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
                let by_signal = status.terminating_signal();
                let code = by_signal.map(|signal| 128 + signal);
                if let Some(code) = status.exit_status().or(code) {
                    own.ended = Some(Ended {
                        code,
                        at: Instant::now(),
                        by_signal: by_signal.is_some(),
                    });
                }
            }
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
