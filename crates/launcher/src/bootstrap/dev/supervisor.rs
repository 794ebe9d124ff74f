//! The supervisor of a command: one loop over signals, orders and deadlines.

use std::{
    collections::VecDeque,
    io::{self, Write as _},
    os::unix::net::UnixStream,
    process::Command,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::Signals,
};

use super::{
    apply::apply,
    connection,
    events::{ConnectionId, Event},
    group::{Group, reap_orphans},
    staged::Staged,
};
use crate::{
    bootstrap::{Places, messages::tell},
    bundle::Listing,
    dev::{CommandState, PACKED, Report},
};

/// Signals that end the task; they and the others are forwarded to the command.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// How long to wait for a client before the code is started as it was packed.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client may take to read a report.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of connections that may exist before they begin their sessions.
const MAX_ARRIVED: usize = 16;

/// The command.
enum Process {
    /// It starts with the first order, or at this time.
    Waiting(Instant),
    Running(Group),
    /// It has received SIGTERM, and is killed at this time.
    Stopping(Group, Instant),
    Ended(i32),
}

/// The supervisor of a command.
pub(super) struct Supervisor {
    places: Places,
    command: Command,
    grace: Duration,
    events: Receiver<Event>,
    process: Process,
    /// The state of the folder; empty if it is unknown.
    state: String,
    /// The code in the folder, as it was received.
    code: Listing,
    /// The number of the latest session.
    session: u64,
    /// Connections that have not begun their sessions.
    arrived: VecDeque<(ConnectionId, UnixStream)>,
    /// The last connection of the latest session. Earlier ones are lost.
    client: Option<(ConnectionId, UnixStream)>,
    /// Received orders, in order.
    orders: VecDeque<(ConnectionId, Box<Staged>)>,
    /// Whether the command was stopped to be started again.
    restarts: bool,
    /// The signal that ends the task.
    ending: Option<i32>,
}

impl Supervisor {
    /// Starts listening for signals and clients.
    pub(super) fn start(
        places: &Places,
        mut command: Command,
        grace: Duration,
        code: Listing,
    ) -> io::Result<Self> {
        let (sender, events) = channel();
        let forwarded = ENDING.into_iter().chain([SIGUSR1, SIGUSR2, SIGCHLD]);
        let mut signals = Signals::new(forwarded)?;
        let of_signals = sender.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                if of_signals.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        });
        connection::listen(&places.home, sender)?;
        command.stdin(std::process::Stdio::null());
        Ok(Self {
            places: places.clone(),
            command,
            grace,
            events,
            process: Process::Waiting(Instant::now() + CLIENT_TIMEOUT),
            state: PACKED.to_owned(),
            code,
            session: 0,
            arrived: VecDeque::new(),
            client: None,
            orders: VecDeque::new(),
            restarts: false,
            ending: None,
        })
    }

    /// Supervises the command until a signal ends the task. Returns the exit code of the command.
    pub(super) fn run(mut self) -> io::Result<i32> {
        loop {
            match self.next() {
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Timeout) => self.deadline()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the supervisor has no events"));
                }
            }
            if let Some(signal) = self.ending {
                match self.process {
                    Process::Waiting(_) => return Ok(128 + signal),
                    Process::Ended(code) => return Ok(code),
                    Process::Running(_) | Process::Stopping(..) => {}
                }
            }
        }
    }

    fn next(&self) -> Result<Event, RecvTimeoutError> {
        let deadline = match self.process {
            Process::Waiting(at) | Process::Stopping(_, at) => at,
            Process::Running(_) | Process::Ended(_) => {
                return self
                    .events
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected);
            }
        };
        let left = deadline.saturating_duration_since(Instant::now());
        self.events.recv_timeout(left)
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Signal(SIGCHLD) => self.reap(),
            Event::Signal(signal) => {
                self.forward(signal);
                Ok(())
            }
            Event::Connected(id, mut stream) => {
                let _ = stream.set_write_timeout(Some(WRITE_TIMEOUT));
                if send(&mut stream, &self.hello()) {
                    self.arrived.push_back((id, stream));
                    if self.arrived.len() > MAX_ARRIVED {
                        self.arrived.pop_front();
                    }
                }
                Ok(())
            }
            Event::Begun(id, session) => {
                self.begin(id, session);
                Ok(())
            }
            Event::Described(id) => {
                if self.is_current(id) {
                    self.report(&Report::Listing(self.code.clone()));
                }
                Ok(())
            }
            Event::Disconnected(id) => {
                self.arrived.retain(|(arrived, _)| *arrived != id);
                if self.is_current(id) {
                    self.client = None;
                }
                Ok(())
            }
            Event::Refused(id, problem) => {
                if self.is_current(id) {
                    self.refuse(problem);
                }
                Ok(())
            }
            Event::Order(id, staged) => {
                // The client has connected again, and has sent its state again.
                if self.is_current(id) {
                    self.orders.push_back((id, staged));
                    self.advance()?;
                }
                Ok(())
            }
        }
    }

    /// A connection begins a session, which replaces earlier sessions. A lost connection is
    /// replaced by the next of the same session.
    fn begin(&mut self, id: ConnectionId, session: u64) {
        let at = self.arrived.iter().position(|(arrived, _)| *arrived == id);
        let Some((_, mut stream)) = at.and_then(|at| self.arrived.remove(at)) else {
            return;
        };
        if session < self.session {
            send(&mut stream, &Report::Replaced);
            let _ = stream.shutdown(std::net::Shutdown::Both);
            return;
        }
        if session > self.session {
            self.report(&Report::Replaced);
        }
        if let Some((_, before)) = self.client.take() {
            let _ = before.shutdown(std::net::Shutdown::Both);
        }
        self.session = session;
        self.client = Some((id, stream));
        // This client sends the difference to the current state.
        self.orders.clear();
        self.report(&self.hello());
    }

    fn hello(&self) -> Report {
        Report::Hello {
            state: self.state.clone(),
            command: self.command_state(),
        }
    }

    fn is_current(&self, id: ConnectionId) -> bool {
        matches!(&self.client, Some((current, _)) if *current == id)
    }

    fn command_state(&self) -> CommandState {
        match self.process {
            Process::Waiting(_) => CommandState::Waiting,
            Process::Running(_) | Process::Stopping(..) => CommandState::Running,
            Process::Ended(code) => CommandState::Ended { code },
        }
    }

    /// Passes a signal to the command. One that ends the task is final.
    fn forward(&mut self, signal: i32) {
        if ENDING.contains(&signal) {
            self.ending = Some(signal);
            self.orders.clear();
        }
        if let (Process::Running(group) | Process::Stopping(group, _), Some(signal)) =
            (&self.process, Signal::from_named_raw(signal))
        {
            group.signal(signal);
        }
    }

    /// The deadline of the current state has passed.
    fn deadline(&mut self) -> io::Result<()> {
        match &mut self.process {
            Process::Waiting(_) => {
                tell("no client has connected: starting the code as it was packed");
                self.start_command()
            }
            Process::Stopping(group, at) => {
                group.signal(Signal::KILL);
                // It ends as soon as the kernel lets it.
                *at = Instant::now() + self.grace.max(Duration::from_secs(1));
                Ok(())
            }
            Process::Running(_) | Process::Ended(_) => Ok(()),
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        let (group, was_stopping) = match &self.process {
            Process::Running(group) => (group, false),
            Process::Stopping(group, _) => (group, true),
            Process::Waiting(_) | Process::Ended(_) => {
                reap_orphans();
                return Ok(());
            }
        };
        let Some(code) = group.reap()? else {
            return Ok(());
        };
        // The processes that it leaves behind would keep its ports and devices.
        group.signal(Signal::KILL);
        self.process = Process::Ended(code);
        if !was_stopping && self.ending.is_none() {
            tell(&ended(code));
            self.report(&Report::Ended { code });
        }
        self.advance()
    }

    /// Executes the received orders as far as the command allows.
    fn advance(&mut self) -> io::Result<()> {
        if self.ending.is_some() || matches!(self.process, Process::Stopping(..)) {
            return Ok(());
        }
        let changes = |(_, staged): &(ConnectionId, Box<Staged>)| {
            let order = &staged.order;
            order.restart || staged.files.is_some() || !order.removed.is_empty()
        };
        if self.orders.iter().any(changes) && matches!(self.process, Process::Running(_)) {
            // Files are replaced while the command does not run.
            self.stop_command();
            return Ok(());
        }
        let mut starts = self.restarts;
        let mut executed = false;
        while let Some((_, staged)) = self.orders.pop_front() {
            let order = &staged.order;
            let folder = staged.folder();
            match apply(&self.places.work(), &order.removed, folder.as_deref()) {
                Ok(()) => {
                    order.removed.iter().for_each(|path| self.code.remove(path));
                    self.code.extend(staged.listing.clone());
                    self.state.clone_from(&order.state);
                    starts |= order.restart || matches!(self.process, Process::Waiting(_));
                    executed = true;
                }
                Err(problem) => {
                    self.code.forget(&staged.listing);
                    self.state.clear();
                    self.refuse(problem);
                    // The client sends everything again.
                    self.orders.clear();
                    return Ok(());
                }
            }
        }
        if starts {
            self.start_command()?;
        }
        if executed {
            self.report(&Report::Done {
                state: self.state.clone(),
                started: starts,
            });
        }
        Ok(())
    }

    fn stop_command(&mut self) {
        let process = std::mem::replace(&mut self.process, Process::Ended(0));
        self.process = match process {
            Process::Running(group) => {
                self.restarts = true;
                group.signal(Signal::TERM);
                Process::Stopping(group, Instant::now() + self.grace)
            }
            other => other,
        };
    }

    /// Starts the command. One that cannot be started is an error of the first start only: a
    /// change may have removed the program, and the next may bring it back.
    fn start_command(&mut self) -> io::Result<()> {
        self.restarts = false;
        match Group::start(&mut self.command) {
            Ok(group) => self.process = Process::Running(group),
            Err(error) if matches!(self.process, Process::Waiting(_)) => return Err(error),
            Err(error) => {
                tell(&format!(
                    "the command cannot be started: {error}; waiting for the next change"
                ));
                self.process = Process::Ended(127);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, problem: String) {
        self.report(&Report::Refused {
            state: self.state.clone(),
            problem,
        });
    }

    /// Sends a report to the client, if it is connected.
    fn report(&mut self, report: &Report) {
        let Some((_, stream)) = &mut self.client else {
            return;
        };
        if !send(stream, report) {
            self.client = None;
        }
    }
}

/// Sends a report. Ends a connection whose client does not read it, and returns false.
fn send(stream: &mut UnixStream, report: &Report) -> bool {
    let Ok(mut line) = serde_json::to_vec(report) else {
        return true;
    };
    line.push(b'\n');
    let is_sent = stream.write_all(&line).is_ok();
    if !is_sent {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    is_sent
}

fn ended(code: i32) -> String {
    format!("the command ended with exit code {code}; waiting for the next change")
}
