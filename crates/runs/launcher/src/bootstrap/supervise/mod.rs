//! Runs a command as its parent, in its own process group. Process 1 of a container must do so,
//! because it has to reap orphaned processes, and the kernel delivers only signals that it handles.
//!
//! All ends of a command are handled here: signals of the container runtime, time limits, idle
//! GPUs, restarts of all tasks, changes of `longshore dev`. [`recipients`] selects the processes
//! that receive the signal. After the signal, the command ends when these processes have ended.

mod leftovers;
mod limit;
mod processes;
mod recipients;
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
use rustix::process::Pid;
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::Signals,
};

use super::terminal;
use crate::restarts::TaskLimit;

pub(super) use limit::{OVERDUE, Timer, Timing};
use supervised::Supervised;

/// The signals to forward to the command. Excludes signals that the kernel sends for faults of this
/// process, and signals that cannot be caught.
const FORWARDED: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// The interval between checks of the remaining processes of a command.
const FINISH_INTERVAL: Duration = Duration::from_millis(50);

/// Returns true if this process is the first process of its container.
#[must_use]
pub fn is_first() -> bool {
    std::process::id() == 1
}

/// Returns true if this is a container of the embedded cluster with its own process namespace.
fn is_embedded() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    let has_proc =
        own.is_some_and(|own| own.as_os_str() == std::process::id().to_string().as_str());
    has_proc && Path::new(names::TERMINATION_FILE).is_file()
}

/// Returns true if all processes in `/proc` belong to this container.
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
/// The same as [`supervise`].
pub(super) fn run(
    command: &mut Command,
    limit: Option<&TaskLimit>,
    grace: Duration,
) -> io::Result<i32> {
    let mut supervisor = Supervisor::<()>::new()?;
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

/// An event of a supervised command.
pub(super) enum Happened<T> {
    /// The command ended, with this exit code.
    Ended(i32),
    /// This process received a signal. The command has received it, too.
    Signal(i32),
    /// A message arrived.
    Message(T),
    /// The time limit of the wait has passed.
    Due,
}

enum Event<T> {
    Signal(i32),
    Message(T),
}

/// Starts a command, once or several times, and reports its events and the messages of other
/// threads.
pub(super) struct Supervisor<T> {
    events: Receiver<Event<T>>,
    sender: Sender<Event<T>>,
    has_terminal: bool,
    running: Option<Supervised>,
}

/// Sends messages to a [`Supervisor`].
pub(super) struct Mailbox<T>(Sender<Event<T>>);

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Mailbox<T> {
    /// Sends a message. Returns true if the supervisor still exists.
    pub(super) fn send(&self, message: T) -> bool {
        self.0.send(Event::Message(message)).is_ok()
    }
}

impl<T: Send + 'static> Supervisor<T> {
    /// Installs the signal handlers.
    pub(super) fn new() -> io::Result<Self> {
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
        leftovers::adopt();
        Ok(Self {
            events,
            sender,
            has_terminal: terminal::is_there(),
            running: None,
        })
    }

    /// The mailbox for messages of other threads.
    pub(super) fn mailbox(&self) -> Mailbox<T> {
        Mailbox(self.sender.clone())
    }

    /// Starts the command.
    pub(super) fn start(&mut self, command: &mut Command) -> io::Result<()> {
        let child = command.process_group(0).spawn()?;
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let child = child.ok_or_else(|| io::Error::other("the command has no process id"))?;
        if self.has_terminal {
            terminal::give(child);
        }
        self.running = Some(Supervised::new(child, self.has_terminal));
        Ok(())
    }

    /// Waits for the next event, at most until `due`.
    pub(super) fn next(&mut self, due: Option<Instant>) -> io::Result<Happened<T>> {
        loop {
            if let Some(code) = self.running.as_mut().and_then(Supervised::finish) {
                self.running = None;
                return Ok(Happened::Ended(code));
            }
            let event = match self.receive(due) {
                Err(RecvTimeoutError::Timeout) if due.is_some_and(|due| due <= Instant::now()) => {
                    return Ok(Happened::Due);
                }
                Err(RecvTimeoutError::Timeout) => continue,
                received => received.map_err(io::Error::other)?,
            };
            match event {
                Event::Signal(SIGCHLD) => supervised::reap(self.running.as_mut())?,
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

    fn receive(&self, due: Option<Instant>) -> Result<Event<T>, RecvTimeoutError> {
        let is_finishing = self.running.as_ref().is_some_and(Supervised::is_finishing);
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        match left {
            // Processes that are not children of this process end without a signal.
            _ if is_finishing => {
                let left = left.unwrap_or(FINISH_INTERVAL);
                self.events.recv_timeout(left.min(FINISH_INTERVAL))
            }
            Some(left) => self.events.recv_timeout(left),
            None => self
                .events
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Executes the action of the time limit.
    pub(super) fn obey(&mut self, timing: Option<Timing>) {
        match timing {
            Some(Timing::Warn(signal)) => {
                if let Some(running) = &mut self.running {
                    running.notify(limit::number(signal));
                }
            }
            Some(Timing::End) => self.end(),
            Some(Timing::Kill) => self.kill(),
            None => {}
        }
    }

    /// Asks the command to end.
    pub(super) fn end(&mut self) {
        if let Some(running) = &mut self.running {
            running.end(SIGTERM);
        }
    }

    /// Kills the command and all processes that it has started. The end is reported as usual.
    pub(super) fn kill(&mut self) {
        if let Some(running) = &mut self.running {
            running.kill();
        }
    }

    /// Kills the remaining processes of the last command.
    pub(super) fn clean(&self) {
        if self.running.is_none() {
            leftovers::kill_all();
        }
    }
}

/// Returns true if a signal asks a process to end.
pub(super) fn is_terminating(signal: i32) -> bool {
    matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM)
}
