//! A task of a run whose tasks restart together: its command, and its connection to the first
//! task.

use std::{
    io,
    net::TcpStream,
    time::{Duration, Instant},
};

use super::{
    connect::News,
    messages::{BEAT, Order, Report, send},
};
use crate::{
    bootstrap::{
        BootstrapError, attempt,
        messages::tell,
        prepare::Prepared,
        supervise::{Happened, OVERDUE, Supervisor, Timer, is_terminating},
    },
    restarts::Together,
};

/// The time that the first task continues after the end of the run, so that the others learn about
/// it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The state of the command.
enum Phase {
    /// The command does not run.
    Idle {
        since: Instant,
    },
    Running {
        attempt: u32,
        timer: Option<Timer>,
    },
    /// The command is being ended, and is killed at this time.
    Ending {
        kill: Option<Instant>,
    },
    /// The command ended by itself.
    Ended {
        code: i32,
    },
}

/// A task.
pub(super) struct Member<'a> {
    prepared: &'a mut Prepared,
    together: &'a Together,
    is_first: bool,
    phase: Phase,
    /// The last attempt that was started, or 0.
    last: u32,
    connection: Option<TcpStream>,
    /// The reason for a missing connection, for errors.
    problem: String,
    /// True if the pod is being deleted.
    terminating: bool,
    /// True if the run has ended while this task of a service role still runs.
    released: bool,
    beat: Instant,
}

/// The consequence of an event: the exit code of the process, or `None` to continue.
type Next = Result<Option<i32>, BootstrapError>;

impl<'a> Member<'a> {
    pub(super) fn new(prepared: &'a mut Prepared, together: &'a Together, is_first: bool) -> Self {
        let now = Instant::now();
        Self {
            prepared,
            together,
            is_first,
            phase: Phase::Idle { since: now },
            last: 0,
            connection: None,
            problem: "no connection".to_owned(),
            terminating: false,
            released: false,
            beat: now + BEAT,
        }
    }

    /// Runs the command as ordered, until the end of the task.
    pub(super) fn run(
        mut self,
        supervisor: &mut Supervisor<News>,
        cannot_run: &impl Fn(io::Error) -> BootstrapError,
    ) -> Result<i32, BootstrapError> {
        loop {
            let happened = supervisor.next(Some(self.due())).map_err(cannot_run)?;
            let next = match happened {
                Happened::Message(news) => self.heard(news, supervisor, cannot_run)?,
                Happened::Ended(code) => self.ended(code, supervisor),
                Happened::Signal(signal) if is_terminating(signal) => {
                    self.terminating = true;
                    match self.phase {
                        Phase::Idle { .. } => Some(128 + signal),
                        Phase::Ended { code } => Some(if code == 0 { 128 + signal } else { code }),
                        _ => None,
                    }
                }
                Happened::Signal(_) | Happened::Due => None,
            };
            if let Some(code) = next {
                return Ok(code);
            }
            self.pass_time(supervisor)?;
        }
    }

    /// The time of the next action without an event.
    fn due(&self) -> Instant {
        let other = match &self.phase {
            Phase::Running { timer, .. } => timer.as_ref().and_then(Timer::due),
            Phase::Ending { kill } => *kill,
            Phase::Idle { since } => since.checked_add(self.timeout()),
            Phase::Ended { .. } => None,
        };
        other.map_or(self.beat, |other| other.min(self.beat))
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.together.timeout)
    }

    fn pass_time(&mut self, supervisor: &mut Supervisor<News>) -> Result<(), BootstrapError> {
        let (now, timeout) = (Instant::now(), self.timeout());
        if now >= self.beat {
            self.beat = now + BEAT;
            self.report(&Report::Beat);
        }
        match &mut self.phase {
            Phase::Running {
                timer: Some(timer), ..
            } => supervisor.obey(timer.at(now)),
            Phase::Ending { kill } if kill.is_some_and(|kill| kill <= now) => {
                *kill = None;
                supervisor.kill();
            }
            Phase::Idle { since } if now.duration_since(*since) >= timeout => {
                let (missing, problem) = match self.connection {
                    Some(_) => (
                        "not all tasks of the run were there",
                        "see the pods of the other tasks: `longshore why`".to_owned(),
                    ),
                    None => (
                        "the first task of the run did not answer",
                        std::mem::take(&mut self.problem),
                    ),
                };
                return Err(BootstrapError::Alone {
                    missing,
                    seconds: self.together.timeout,
                    problem,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn heard(
        &mut self,
        news: News,
        supervisor: &mut Supervisor<News>,
        cannot_run: &impl Fn(io::Error) -> BootstrapError,
    ) -> Next {
        if self.released {
            return Ok(None);
        }
        match news {
            News::Connected(stream) => {
                self.connection = Some(stream);
                match self.phase {
                    Phase::Idle { .. } => self.join(),
                    // The result belongs to an attempt that was given up.
                    Phase::Ended { .. } => self.rest(supervisor),
                    // The task joins when its command has ended.
                    Phase::Running { .. } => self.stop("the connection is new", supervisor),
                    Phase::Ending { .. } => {}
                }
            }
            News::Lost(problem) => {
                self.connection = None;
                self.problem = problem;
                match self.phase {
                    Phase::Running { .. } => {
                        self.stop("the connection to the first task was lost", supervisor);
                    }
                    Phase::Ended { .. } => self.rest(supervisor),
                    Phase::Idle { .. } | Phase::Ending { .. } => {}
                }
            }
            News::Ordered(order) => return self.ordered(order, supervisor, cannot_run),
        }
        Ok(None)
    }

    fn ordered(
        &mut self,
        order: Order,
        supervisor: &mut Supervisor<News>,
        cannot_run: &impl Fn(io::Error) -> BootstrapError,
    ) -> Next {
        match (order, &self.phase) {
            (Order::Start { attempt }, Phase::Idle { .. }) if !self.terminating => {
                self.start(attempt, supervisor).map_err(cannot_run)?;
            }
            (Order::Stop { reason }, Phase::Running { .. }) => self.stop(&reason, supervisor),
            (Order::Stop { reason }, Phase::Ended { .. }) => {
                tell(&format!("restarting all tasks: {reason}"));
                self.rest(supervisor);
            }
            (Order::Fail, Phase::Ended { code }) => return Ok(Some(*code)),
            (Order::Done, Phase::Running { .. }) => self.released = true,
            (Order::Done, Phase::Idle { .. } | Phase::Ended { .. }) => {
                if self.is_first {
                    std::thread::sleep(DRAIN_TIMEOUT);
                }
                return Ok(Some(0));
            }
            _ => {}
        }
        Ok(None)
    }

    fn start(&mut self, attempt: u32, supervisor: &mut Supervisor<News>) -> io::Result<()> {
        if attempt > 1 {
            tell(&format!("attempt {attempt} begins"));
        }
        self.last = attempt;
        let grace = self.prepared.grace();
        let (name, value) = attempt::variable(attempt);
        supervisor.start(self.prepared.command.env(name, value))?;
        let limit = self.prepared.config.restarts.task_limit.clone();
        let timer = limit.map(|limit| Timer::new(limit, grace, Instant::now()));
        self.phase = Phase::Running { attempt, timer };
        Ok(())
    }

    /// Ends the command, because all tasks start again.
    fn stop(&mut self, reason: &str, supervisor: &mut Supervisor<News>) {
        tell(&format!("restarting all tasks: {reason}"));
        supervisor.end();
        let kill = Instant::now().checked_add(self.prepared.grace());
        self.phase = Phase::Ending { kill };
    }

    fn ended(&mut self, code: i32, supervisor: &mut Supervisor<News>) -> Option<i32> {
        if self.terminating || self.released {
            return Some(code);
        }
        match &self.phase {
            Phase::Running { attempt, timer } => {
                let is_over = timer.as_ref().is_some_and(Timer::is_over);
                let (attempt, code) = (*attempt, if is_over { OVERDUE } else { code });
                self.phase = Phase::Ended { code };
                if code == 0 {
                    tell("the command has succeeded; waiting for the other tasks");
                }
                self.report(&Report::Ended { attempt, code });
                if self.connection.is_none() {
                    self.rest(supervisor);
                }
            }
            _ => self.rest(supervisor),
        }
        None
    }

    /// The command does not run any more, and its result does not matter: the task is ready for the
    /// next attempt.
    fn rest(&mut self, supervisor: &mut Supervisor<News>) {
        supervisor.clean();
        self.phase = Phase::Idle {
            since: Instant::now(),
        };
        // On a new connection, this is the first report.
        self.report(&Report::Stopped);
        self.join();
    }

    fn join(&mut self) {
        self.report(&Report::Join {
            role: self.prepared.task.role.clone(),
            index: self.prepared.task.index,
            replaced: self.prepared.replaced,
            last: self.last,
        });
    }

    fn report(&mut self, report: &Report) {
        let Some(stream) = &mut self.connection else {
            return;
        };
        if send(stream, report).is_err() {
            // The connection's thread reports the loss.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
