//! Runs a command as its parent. Process 1 of a container must: it has to reap orphaned
//! processes, and the kernel delivers only signals that it handles. Time limits and restarts of
//! all tasks need it, too.

mod leftovers;
mod limit;
mod supervised;

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::Command,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::{Duration, Instant},
};

use longshore_diagnosis::names;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::Signals,
};

use super::terminal;
use crate::restarts::TaskLimit;

pub(super) use limit::{OVERDUE, Timer, Timing};
use supervised::Supervised;

/// The signals to forward to the command: not those that the kernel sends for faults of
/// this process, nor those that cannot be caught.
const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

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
    run(command, None, Duration::ZERO)
}

/// Like [`supervise`], with a time limit. A command that exceeds it is ended: with SIGTERM, and
/// after `grace` with SIGKILL. The exit code is then [`OVERDUE`].
///
/// # Errors
/// As [`supervise`].
pub(super) fn run(
    command: &mut Command,
    limit: Option<&TaskLimit>,
    grace: Duration,
) -> io::Result<i32> {
    let mut supervisor = Supervisor::<()>::new(limit.is_some())?;
    supervisor.start(command)?;
    let mut timer = limit.map(|limit| Timer::new(limit.clone(), grace, Instant::now()));
    loop {
        let due = timer.as_ref().and_then(Timer::due);
        if let Happened::Ended(code) = supervisor.next(due)? {
            let is_over = timer.as_ref().is_some_and(Timer::is_over);
            return Ok(if is_over { OVERDUE } else { code });
        }
        if let Some(timer) = &mut timer {
            supervisor.obey(timer.at(Instant::now()));
        }
    }
}

/// What happened to a supervised command.
pub(super) enum Happened<T> {
    /// It ended, with this exit code.
    Ended(i32),
    /// This process received a signal. The command has received it, too.
    Signal(i32),
    /// A message arrived.
    Message(T),
    /// The time came.
    Due,
}

enum Event<T> {
    Signal(i32),
    Message(T),
}

/// Starts a command, once or again, and reports what happens to it, and the messages of other
/// threads.
pub(super) struct Supervisor<T> {
    events: Receiver<Event<T>>,
    sender: Sender<Event<T>>,
    has_terminal: bool,
    /// Whether the command gets its own process group.
    own_group: bool,
    running: Option<Supervised>,
}

/// Sends messages to a [`Supervisor`].
#[derive(Clone)]
pub(super) struct Mailbox<T>(Sender<Event<T>>);

impl<T> Mailbox<T> {
    /// Sends a message. Returns whether the supervisor still exists.
    pub(super) fn send(&self, message: T) -> bool {
        self.0.send(Event::Message(message)).is_ok()
    }
}

impl<T: Send + 'static> Supervisor<T> {
    /// Installs the signal handlers. `ends_commands`: whether [`Supervisor::end`] and
    /// [`Supervisor::kill`] are used.
    pub(super) fn new(ends_commands: bool) -> io::Result<Self> {
        let mut signals = Signals::new(FORWARDED.into_iter().chain([SIGCHLD]))?;
        let (sender, events) = channel();
        let received = sender.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if received.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        });
        if ends_commands {
            leftovers::adopt();
        }
        let has_terminal = terminal::is_there();
        Ok(Self {
            events,
            sender,
            has_terminal,
            own_group: has_terminal || ends_commands,
            running: None,
        })
    }

    /// Where other threads send messages.
    pub(super) fn mailbox(&self) -> Mailbox<T> {
        Mailbox(self.sender.clone())
    }

    /// Starts the command.
    pub(super) fn start(&mut self, command: &mut Command) -> io::Result<()> {
        if self.own_group {
            command.process_group(0);
        }
        let child = command.spawn()?;
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let child = child.ok_or_else(|| io::Error::other("the command has no process id"))?;
        if self.has_terminal {
            terminal::give(child);
        }
        self.running = Some(Supervised::new(child, self.own_group, self.has_terminal));
        Ok(())
    }

    /// Waits for the next event, at most until `due`.
    pub(super) fn next(&mut self, due: Option<Instant>) -> io::Result<Happened<T>> {
        loop {
            let event = match due {
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    match self.events.recv_timeout(left) {
                        Err(RecvTimeoutError::Timeout) => return Ok(Happened::Due),
                        received => received.map_err(io::Error::other)?,
                    }
                }
                None => self.events.recv().map_err(io::Error::other)?,
            };
            match event {
                Event::Signal(SIGCHLD) => {
                    if let Some(code) = supervised::reap(self.running.as_mut())? {
                        self.running = None;
                        return Ok(Happened::Ended(code));
                    }
                }
                Event::Signal(signal) => {
                    if let Some(running) = &mut self.running {
                        running.forward(signal);
                    }
                    return Ok(Happened::Signal(signal));
                }
                Event::Message(message) => return Ok(Happened::Message(message)),
            }
        }
    }

    /// Does what the time limit demands.
    pub(super) fn obey(&mut self, timing: Option<Timing>) {
        match timing {
            Some(Timing::Warn(signal)) => {
                if let Some(running) = &mut self.running {
                    running.forward(limit::number(signal));
                }
            }
            Some(Timing::End) => self.end(),
            Some(Timing::Kill) => self.kill(),
            None => {}
        }
    }

    /// Asks the command and its group to end.
    pub(super) fn end(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = kill_process_group(running.child(), Signal::TERM);
            running.resume_if_stopped();
        }
    }

    /// Kills the command and its group. Its end is reported as usual.
    pub(super) fn kill(&self) {
        if let Some(running) = &self.running {
            let _ = kill_process_group(running.child(), Signal::KILL);
        }
    }

    /// Kills what the last command has left.
    pub(super) fn clean(&self) {
        if self.running.is_none() {
            leftovers::kill_all();
        }
    }
}

/// Whether a signal asks a process to end.
pub(super) fn is_terminating(signal: i32) -> bool {
    matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM)
}
