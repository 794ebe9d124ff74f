//! Following a run at the desk: logs, progress, the end; and what Ctrl-C does.

use std::{
    future::Future,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use longshore::{
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        Event, Follow, FollowOptions, Outcome, Run,
        follow::{self, Ending, LogLine},
        names::Task,
        runs::{self, RunRole},
    },
};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    error::{Error, Kind, Result, exit_code},
    progress::Spinner,
    target::Target,
    ui,
};

/// What Ctrl-C does to a followed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// Ask
    #[default]
    Ask,
    /// Cancel the run
    Cancel,
    /// Leave the run alone
    Detach,
}

/// How a followed run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Telling {
    /// For people
    #[default]
    Text,
    /// A JSON object a line on standard output, whose `event` is started, progress,
    /// waiting, log or finished
    Json,
}

/// What a person wants after Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Cancel,
    Detach,
    GoOn,
    Leave,
}

/// SIGINT and SIGTERM, caught from the beginning, so that none can end the
/// program between the start of something and the note of it.
pub(crate) struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

/// Which of the signals came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caught {
    Interrupt,
    Terminate,
}

impl Interrupt {
    /// Catches the signals from now on.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Error::from_source(Kind::Failed, &error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
        }
    }

    /// Does something unless a signal comes first.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            _ = self.next() => Err(Error::interrupted()),
            done = work => Ok(done),
        }
    }
}

/// How often a plain line about progress may come, where no terminal draws it.
const PLAIN_LINES: Duration = Duration::from_millis(500);
/// How long a cancelled run may take to end.
const GOODBYE: Duration = Duration::from_secs(60);

/// The front of a line about the run, on standard error.
pub(crate) fn head(word: &str) -> String {
    ui::Paint::stderr().bold(&format!("{word:<7}"))
}

/// Follows a run to its end and gives the exit code.
pub(crate) async fn to_the_end(
    target: &Target,
    run: &Run,
    options: FollowOptions,
    (telling, on_interrupt): (Telling, OnInterrupt),
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let cluster = target.cluster();
    let mut follow = match Follow::start(cluster, run, options).await {
        Ok(follow) => follow,
        Err(error) => return Err(unfollowed(error, run)),
    };
    let mut show = Show::new(run, telling);
    let mut cancelling = false;
    let outcome = loop {
        tokio::select! {
            event = follow.next() => match event {
                Some(Ok(Event::Finished(outcome))) => {
                    show.event(Event::Finished(outcome.clone()));
                    break Ok(Some(outcome));
                }
                Some(Ok(event)) => show.event(event),
                Some(Err(error)) => break Err(unfollowed(error, run)),
                None => break Ok(None),
            },
            // Again during the cancellation: leave, without waiting for it.
            caught = interrupt.next() => {
                let wish = if cancelling {
                    Wish::Leave
                } else {
                    show.spinner.pause();
                    let wish = wish(on_interrupt, caught, &mut interrupt).await;
                    show.spinner.resume();
                    wish
                };
                match wish {
                    Wish::GoOn => {}
                    Wish::Leave => break Err(Error::interrupted()),
                    Wish::Detach => {
                        show.end();
                        target.keep()?;
                        let name = run.name.as_str();
                        ui::note(format!("{} {name} goes on: `longshore logs {name} --follow` shows it, `longshore cancel {name}` ends it", head("left")));
                        return Ok(exit_code(Kind::Interrupted));
                    }
                    Wish::Cancel => {
                        cancelling = true;
                        ui::note(format!("{} {}", head("cancel"), run.name.as_str()));
                        cancel(cluster, run).await?;
                    }
                }
            }
        }
    };
    show.end();
    match outcome? {
        Some(outcome) => conclude(cluster, run, &outcome, &show).await,
        None => Err(Error::new(
            Kind::Cluster,
            "the run's events ended before the run did",
        )),
    }
}

async fn conclude(
    cluster: &Cluster,
    run: &Run,
    outcome: &Outcome,
    show: &Show,
) -> Result<ExitCode> {
    match outcome.ending {
        Ending::Succeeded => {
            let after = ui::span(
                show.begin
                    .elapsed()
                    .as_secs()
                    .try_into()
                    .unwrap_or(i64::MAX),
            );
            let paint = ui::Paint::stderr();
            ui::note(format!(
                "{} {} after {after}",
                head("done"),
                paint.green("succeeded")
            ));
            return Ok(ExitCode::SUCCESS);
        }
        Ending::Cancelled => {
            wait_until_still(cluster, run).await?;
            let name = run.name.as_str();
            ui::note(format!("{} the run {name} was cancelled", head("done")));
            return Ok(exit_code(Kind::Interrupted));
        }
        Ending::Failed | Ending::NotStarted => {}
    }
    let mut error = Error::new(Kind::Failed, &outcome.reason);
    if let Some(remedy) = &outcome.remedy {
        error = error.hint(remedy);
    }
    ui::error(&error);
    // A failure must not look like a success, whatever its number.
    let code = u8::try_from(outcome.exit_code)
        .ok()
        .filter(|&code| code != 0)
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn unfollowed(error: follow::Error, run: &Run) -> Error {
    let name = run.name.as_str();
    let error = match error {
        follow::Error::Cluster(error) => Error::from(error),
        other => Error::from_source(Kind::Cluster, &other),
    };
    error.hint(format!(
        "the run {name} may go on: `longshore logs {name} --follow`"
    ))
}

/// What a person wants, by the option or by asking.
async fn wish(on_interrupt: OnInterrupt, caught: Caught, interrupt: &mut Interrupt) -> Wish {
    match on_interrupt {
        OnInterrupt::Cancel => Wish::Cancel,
        OnInterrupt::Detach => Wish::Detach,
        OnInterrupt::Ask if caught == Caught::Interrupt && ui::is_interactive() => {
            ask(interrupt).await
        }
        OnInterrupt::Ask => Wish::Cancel,
    }
}

async fn ask(interrupt: &mut Interrupt) -> Wish {
    ui::prompt("\nDetach (d) or cancel the run (c)? Enter goes on, Ctrl-C again detaches: ");
    // The thread stays in its read if Ctrl-C comes first; the program's end
    // does not wait for it.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = tokio::select! {
        answer = answer => answer,
        _ = interrupt.next() => return Wish::Detach,
    };
    match answer {
        Ok(Ok(line)) => match line.trim().to_ascii_lowercase().as_str() {
            "c" | "cancel" => Wish::Cancel,
            "d" | "detach" => Wish::Detach,
            _ => Wish::GoOn,
        },
        _ => Wish::Detach,
    }
}

/// Cancels a run: no task of it is started any more.
pub(crate) async fn cancel(cluster: &Cluster, run: &Run) -> Result<()> {
    runs::cancel(cluster, run, jiff::Timestamp::now()).await?;
    Ok(())
}

/// Waits until no process of a run is left.
pub(crate) async fn wait_until_still(cluster: &Cluster, run: &Run) -> Result<()> {
    let begin = Instant::now();
    loop {
        let is_alive = |pod: &Item<Pod>| {
            let phase = pod.status_field::<String>(&["phase"]).unwrap_or_default();
            !matches!(phase.as_str(), "Succeeded" | "Failed")
        };
        let pods = run.list_pods(cluster).await?;
        let alive = pods.iter().filter(|pod| is_alive(pod)).count();
        if alive == 0 {
            return Ok(());
        }
        if begin.elapsed() > GOODBYE {
            let text = format!("{alive} pods of the run {} do not end", run.name.as_str());
            return Err(Error::new(Kind::Failed, text).hint("`longshore get pods` shows them"));
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

/// Shows what happens in a run.
struct Show {
    begin: Instant,
    spinner: Spinner,
    lines: Lines,
    last_plain: Option<Instant>,
    telling: Telling,
}

impl Show {
    fn new(run: &Run, telling: Telling) -> Self {
        if telling == Telling::Json {
            let started = json!({
                "event": "started",
                "run": run.name.as_str(),
                "namespace": run.namespace,
                "roles": run.roles,
            });
            ui::line(started.to_string());
            ui::flush();
        }
        Self {
            telling,
            begin: Instant::now(),
            spinner: Spinner::start("starting"),
            lines: Lines::new(run),
            last_plain: None,
        }
    }

    fn event(&mut self, event: Event) {
        if self.telling == Telling::Json {
            let text = serde_json::to_string(&event).unwrap_or_default();
            self.spinner.aside(|| ui::line(text));
            ui::flush();
        }
        match event {
            Event::Log(_) if self.telling == Telling::Json => {}
            Event::Log(line) => self.spinner.aside(|| ui::line(self.lines.show(&line))),
            Event::Waiting(why) => self.spinner.aside(|| {
                ui::note(format!(
                    "{} {}; {}",
                    head("waits"),
                    why.sentence(),
                    why.remedy
                ));
            }),
            Event::Progress(progress) => {
                self.spinner.say(|| progress.to_string());
                let is_due = self
                    .last_plain
                    .is_none_or(|last| last.elapsed() > PLAIN_LINES);
                if !ui::draws_progress() && is_due {
                    self.last_plain = Some(Instant::now());
                    ui::note(format!("{} {progress}", head("tasks")));
                }
            }
            Event::Finished(_) => {}
        }
    }

    fn end(&self) {
        self.spinner.end();
    }
}

/// Puts the task in front of each line of a merged log.
pub(crate) struct Lines {
    width: usize,
    roles: Vec<String>,
    paint: ui::Paint,
}

impl Lines {
    pub(crate) fn new(run: &Run) -> Self {
        let width = |role: &RunRole| {
            Task {
                role: role.name.clone(),
                index: role.count.saturating_sub(1),
            }
            .to_string()
            .len()
        };
        Self {
            width: run.roles.iter().map(width).max().unwrap_or(0),
            roles: run.roles.iter().map(|role| role.name.clone()).collect(),
            paint: ui::Paint::stdout(),
        }
    }

    /// `worker/0 | text`.
    pub(crate) fn show(&self, line: &LogLine) -> String {
        let voice = self
            .roles
            .iter()
            .position(|role| *role == line.task.role)
            .unwrap_or(0);
        let voice = voice * 7 + usize::try_from(line.task.index).unwrap_or(0);
        let mut front = format!("{:<width$}", line.task.to_string(), width = self.width);
        if let Some(container) = &line.container {
            front = format!("{front} ({container})");
        }
        format!("{} | {}", self.paint.voice(voice, &front), line.line)
    }
}
