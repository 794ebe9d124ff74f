//! The supervisor of a command: one loop over signals, orders and deadlines.

use std::{
    collections::VecDeque,
    io::{self, Write as _},
    os::unix::net::UnixStream,
    process::Command,
    time::{Duration, Instant},
};

use super::{
    apply::apply,
    connection,
    events::{ConnectionId, Event},
    staged::Staged,
};
use crate::{
    bootstrap::{
        Places,
        messages::tell,
        supervise::{Happened, Supervisor as Processes, is_terminating},
    },
    bundle::Listing,
    dev::{CommandState, PACKED, Report},
};

/// The maximum time to wait for a client before the packed code is started.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum time that a client may take to read a report.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of connections that may exist before they begin their sessions.
const MAX_ARRIVED: usize = 16;

/// The command.
enum Process {
    /// The command starts with the first order, or at this time.
    Waiting(Instant),
    Running,
    /// The command has received SIGTERM, and is killed at this time.
    Stopping(Instant),
    Ended(i32),
}

/// The supervisor of a command.
pub(super) struct Supervisor {
    places: Places,
    command: Command,
    grace: Duration,
    processes: Processes<Event>,
    process: Process,
    /// The state of the folder; empty if it is unknown.
    state: String,
    /// The code in the folder, as it was received.
    code: Listing,
    /// The number of the latest session.
    session: u64,
    /// Connections that have not begun their sessions.
    arrived: VecDeque<(ConnectionId, UnixStream)>,
    /// The last connection of the latest session. Its earlier connections are lost.
    client: Option<(ConnectionId, UnixStream)>,
    /// Received orders, in order.
    orders: VecDeque<(ConnectionId, Box<Staged>)>,
    /// True if the command was stopped to be started again.
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
        let processes = Processes::new()?;
        connection::listen(&places.home, processes.mailbox())?;
        command.stdin(std::process::Stdio::null());
        Ok(Self {
            places: places.clone(),
            command,
            grace,
            processes,
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
            match self.processes.next(self.due())? {
                Happened::Ended(code) => self.ended(code)?,
                Happened::Signal(signal) if is_terminating(signal) => {
                    self.ending = Some(signal);
                    self.orders.clear();
                }
                Happened::Signal(_) => {}
                Happened::Message(event) => self.handle(event)?,
                Happened::Due => self.deadline()?,
            }
            if let Some(signal) = self.ending {
                match self.process {
                    Process::Waiting(_) => return Ok(128 + signal),
                    Process::Ended(code) => return Ok(code),
                    Process::Running | Process::Stopping(_) => {}
                }
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        match self.process {
            Process::Waiting(at) | Process::Stopping(at) => Some(at),
            Process::Running | Process::Ended(_) => None,
        }
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event {
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
                // The client has reconnected, and has sent its state again.
                if self.is_current(id) {
                    self.orders.push_back((id, staged));
                    self.advance()?;
                }
                Ok(())
            }
        }
    }

    /// A connection begins a session, which replaces earlier sessions. A lost connection is
    /// replaced by the next connection of the same session.
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
            Process::Running | Process::Stopping(_) => CommandState::Running,
            Process::Ended(code) => CommandState::Ended { code },
        }
    }

    /// The deadline of the current state has passed.
    fn deadline(&mut self) -> io::Result<()> {
        match &mut self.process {
            Process::Waiting(_) => {
                tell("no client has connected: starting the code as it was packed");
                self.start_command()
            }
            Process::Stopping(at) => {
                self.processes.kill();
                // The command ends as soon as the kernel permits it.
                *at = Instant::now() + self.grace.max(Duration::from_secs(1));
                Ok(())
            }
            Process::Running | Process::Ended(_) => Ok(()),
        }
    }

    fn ended(&mut self, code: i32) -> io::Result<()> {
        // Remaining processes of the command would keep its ports and devices.
        self.processes.clean();
        let was_stopping = matches!(self.process, Process::Stopping(_));
        self.process = Process::Ended(code);
        if !was_stopping && self.ending.is_none() {
            tell(&ended(code));
            self.report(&Report::Ended { code });
        }
        self.advance()
    }

    /// Executes the received orders as far as the command allows.
    fn advance(&mut self) -> io::Result<()> {
        if self.ending.is_some() || matches!(self.process, Process::Stopping(_)) {
            return Ok(());
        }
        let changes = |(_, staged): &(ConnectionId, Box<Staged>)| {
            let order = &staged.order;
            order.restart || staged.files.is_some() || !order.removed.is_empty()
        };
        if self.orders.iter().any(changes) && matches!(self.process, Process::Running) {
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
        self.restarts = true;
        self.processes.end();
        self.process = Process::Stopping(Instant::now() + self.grace);
    }

    /// Starts the command. If it cannot be started, only the first start fails: a change may have
    /// removed the program, and the next change may add it again.
    fn start_command(&mut self) -> io::Result<()> {
        self.restarts = false;
        match self.processes.start(&mut self.command) {
            Ok(()) => self.process = Process::Running,
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

/// Sends a report. If the client does not read it, ends the connection and returns false.
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
