//! The event loop of a followed run: its events, signals, the printer and the cluster's process.

use std::{process::ExitCode, time::Duration};

use longshore::launcher::{
    Event, Follow, FollowOptions, Outcome, Run,
    explain::{Cause, Explanation},
    follow::{self, Ending},
};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use super::{
    Beside, How, OnInterrupt, cancel,
    decision::{Decision, Question, decide},
    end::{conclude, stopped, unfollowed},
    left,
    notify::{Notice, notify},
    usage::{LiveUsage, summarize, warn_of_memory},
};
use crate::{
    error::{Error, Kind, Result, exit_code},
    hints,
    interrupt::{Caught, Interrupt},
    output::EventFormat,
    printer::{Batch, Printer},
    show::{Show, head},
    stdin::{self, IgnoredInput},
    target::{Gone, Target},
    ui,
};

/// The interval between updates of unfinished lines.
const DRAW: Duration = Duration::from_millis(100);
/// The time to wait for events that a cluster sent before it stopped.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);

/// The next event for a follower.
enum Next {
    Event(Box<Option<Result<Event, follow::Error>>>),
    Caught(Caught),
    /// The user has answered the question.
    Answered(Decision),
    /// The printer accepted a batch of lines.
    Written,
    /// Progress has to be drawn.
    Draw,
    /// The embedded cluster's process has ended.
    Gone(Gone),
    /// Data arrived on standard input, which is not passed to the task.
    InputIgnored,
    /// Another part of the program reports something.
    Beside(Beside),
}

/// The end of the run's events.
type End = Result<Option<Outcome>>;

async fn answer(question: &mut Option<Question>) -> Decision {
    match question {
        Some(question) => question.answer().await,
        None => std::future::pending().await,
    }
}

async fn next_beside(beside: &mut Option<mpsc::Receiver<Beside>>) -> Beside {
    match beside {
        Some(receiver) => match receiver.recv().await {
            Some(beside) => beside,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// A run that is followed in the terminal.
pub(super) struct Session<'a> {
    target: &'a Target,
    run: &'a Run,
    follow: Follow,
    /// The number of last lines to print of each log.
    tail: Option<u64>,
    on_interrupt: OnInterrupt,
    /// The question after Ctrl-C, until it is answered.
    question: Option<Question>,
    interrupt: Interrupt,
    ignored: IgnoredInput,
    beside: Option<mpsc::Receiver<Beside>>,
    again: &'static str,
    show: Show,
    usage: LiveUsage,
    printer: Printer,
    /// Output that the printer has not accepted yet.
    batch: Batch,
    notify: Vec<String>,
    /// The causes of waiting that were notified.
    notified: Vec<Cause>,
    /// The progress and the unfinished lines on the terminal.
    drawn: (String, Vec<String>),
    cancelling: bool,
}

impl<'a> Session<'a> {
    pub(super) async fn start(
        target: &'a Target,
        run: &'a Run,
        options: FollowOptions,
        how: How,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let tail = options.tail;
        let options = FollowOptions {
            unfinished: how.format == EventFormat::Text && ui::draws_progress(),
            ..options
        };
        let is_drawn = options.unfinished;
        let cluster = target.cluster();
        let follow = match how.watched {
            Some(watched) => watched.follow(&options),
            None => Follow::start(cluster, run, options).await,
        };
        let follow = follow.map_err(|error| unfollowed(error, run))?;
        let usage = LiveUsage::start(target.cluster(), run, is_drawn);
        let mut batch = Batch::default();
        let show = Show::new(run, how.format, &target.facts(), &mut batch);
        Ok(Self {
            target,
            run,
            follow,
            tail,
            on_interrupt: how.on_interrupt,
            question: None,
            interrupt,
            ignored: how.ignored,
            beside: how.beside,
            again: how
                .again
                .unwrap_or("`longshore logs RUN --follow` shows it"),
            show,
            usage,
            printer: Printer::start("starting"),
            batch,
            notify: how.notify,
            notified: Vec::new(),
            drawn: (String::new(), Vec::new()),
            cancelling: false,
        })
    }

    /// Follows the run to its end and returns the exit code.
    pub(super) async fn follow(mut self) -> Result<ExitCode> {
        let mut death_reported = false;
        let mut decided = None;
        let mut draw = tokio::time::interval(DRAW);
        draw.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                caught = self.interrupt.next() => Next::Caught(caught),
                decision = answer(&mut self.question) => Next::Answered(decision),
                _ = draw.tick(), if ui::draws_progress() && self.question.is_none() => Next::Draw,
                () = self.printer.write(&mut self.batch), if self.is_due() => Next::Written,
                event = self.follow.next(), if !self.batch.is_full() => Next::Event(Box::new(event)),
                gone = self.target.gone(&mut death_reported) => Next::Gone(gone),
                () = self.ignored.arrives() => Next::InputIgnored,
                beside = next_beside(&mut self.beside) => Next::Beside(beside),
            };
            let end = match next {
                Next::Event(event) => self.print(*event),
                Next::Written => {
                    self.ask_again().await;
                    None
                }
                Next::InputIgnored => {
                    self.batch.note(&ui::warned(stdin::IGNORED));
                    None
                }
                Next::Gone(gone) => self.cluster_ended(gone).await,
                Next::Draw => {
                    self.draw();
                    None
                }
                Next::Beside(Beside::Note(line)) => {
                    self.batch.note(&line);
                    None
                }
                Next::Beside(Beside::Decided(decision)) => {
                    decided = Some(decision);
                    None
                }
                Next::Caught(caught) => {
                    decided = self.caught(caught).await;
                    None
                }
                Next::Answered(decision) => {
                    self.question = None;
                    self.printer.resume().await;
                    decided = Some(decision);
                    None
                }
            };
            match decided.take() {
                None | Some(Decision::Continue) => {}
                Some(Decision::Leave) => {
                    self.printer.leave(self.batch).await;
                    return Err(Error::interrupted());
                }
                Some(Decision::Detach) => {
                    self.printer.leave(self.batch).await;
                    left(self.run, self.again);
                    return Ok(exit_code(Kind::Interrupted));
                }
                Some(Decision::Cancel) => self.cancel().await?,
            }
            if let Some(end) = end {
                return self.finish(end).await;
            }
        }
    }

    /// Prints an event and those that are available now, together.
    fn print(&mut self, first: Option<Result<Event, follow::Error>>) -> Option<End> {
        let mut event = first;
        loop {
            match event {
                Some(Ok(event)) => {
                    self.show.event(&event, &mut self.batch);
                    if let Event::Waiting(why) = &event {
                        self.notify_waiting(why);
                    }
                    if let Event::Finished(outcome) = event {
                        return Some(Ok(Some(outcome)));
                    }
                }
                Some(Err(error)) => return Some(Err(unfollowed(error, self.run))),
                None => return Some(Ok(None)),
            }
            if self.batch.is_full() {
                return None;
            }
            event = Some(self.follow.try_next()?);
        }
    }

    /// The process of the embedded cluster has ended.
    async fn cluster_ended(&mut self, gone: Gone) -> Option<End> {
        let how = match gone {
            Gone::Died => {
                self.batch.note(&format!(
                    "{} the process of the embedded cluster has ended; {}",
                    head("waiting"),
                    hints::complete("`longshore up` starts it again")
                ));
                return None;
            }
            Gone::Stopped(how) => how,
        };
        // Process pending events first: a cluster that shuts down gracefully notifies its
        // followers.
        let event = match tokio::time::timeout(LAST_EVENT_TIMEOUT, self.follow.next()).await {
            Ok(Some(Ok(event))) => event,
            _ => Event::Finished(stopped(&how, self.run)),
        };
        self.print(Some(Ok(event)))
    }

    /// Notifies once about each cause for which the run waits, in the background.
    fn notify_waiting(&mut self, why: &Explanation) {
        if self.notify.is_empty() || self.notified.contains(&why.kind) {
            return;
        }
        self.notified.push(why.kind);
        let (words, run, why) = (self.notify.clone(), self.run.clone(), why.clone());
        tokio::spawn(async move {
            let sentence = why.sentence();
            notify(&words, &run, Notice::waiting(&sentence, &why)).await;
        });
    }

    fn draw(&mut self) {
        let lines = self.show.unfinished(&self.follow.unfinished());
        let shown = (self.usage.after(self.show.progress()), lines);
        if shown != self.drawn && self.printer.show(shown.0.clone(), shown.1.clone()) {
            self.drawn = shown;
        }
    }

    /// Returns true if output is to be written now. While a question is open, output waits for the
    /// answer until the batch is full: the run is followed meanwhile, and may end.
    fn is_due(&self) -> bool {
        match self.question {
            None => !self.batch.is_empty(),
            Some(_) => self.batch.is_full(),
        }
    }

    /// Repeats an open question below the output that was written after it.
    async fn ask_again(&self) {
        if let Some(question) = &self.question {
            self.printer.pause().await;
            question.show();
        }
    }

    /// Handles a signal: decides, or asks the user.
    async fn caught(&mut self, caught: Caught) -> Option<Decision> {
        // Ctrl-C during the cancellation: exit without waiting.
        if self.cancelling {
            return Some(Decision::Leave);
        }
        if self.question.take().is_some() {
            return Some(Decision::Detach);
        }
        let decision = decide(self.on_interrupt, caught);
        if decision.is_none() {
            self.printer.pause().await;
            self.question = Some(Question::ask());
        }
        decision
    }

    async fn cancel(&mut self) -> Result<()> {
        self.cancelling = true;
        let name = self.run.name.as_str();
        self.batch.note(&format!("{} {name}", head("cancel")));
        cancel(self.target.cluster(), self.run).await
    }

    /// Prints the end after all earlier output.
    async fn finish(mut self, end: End) -> Result<ExitCode> {
        if self.question.is_some() {
            // The question needs no answer any more: the run has ended.
            ui::note("");
        }
        // A stopped terminal or a pager may take any time; Ctrl-C ends the wait.
        let finished = self.printer.finish(self.batch);
        if let Err(left) = self.interrupt.unless(finished).await {
            ui::abandon_output();
            return Err(left);
        }
        if self.ignored.has_come() {
            ui::warning(stdin::IGNORED);
        }
        match end? {
            Some(outcome) => {
                let cluster = self.target.cluster();
                warn_of_memory(cluster, self.run).await;
                if is_long(&outcome) {
                    summarize(cluster, self.run).await;
                }
                let code = conclude(cluster, self.run, &outcome, &self.show, self.tail).await;
                notify(&self.notify, self.run, Notice::ended(&outcome)).await;
                code
            }
            None => Err(Error::new(
                Kind::Cluster,
                "the run's events ended before the run did",
            )),
        }
    }
}

/// Returns true if a run has ended by itself, and took long enough for its tasks to record their
/// usage.
fn is_long(outcome: &Outcome) -> bool {
    let took = outcome.began.zip(outcome.finished);
    let took = took.map(|(from, to)| to.as_second().saturating_sub(from.as_second()));
    matches!(outcome.ending, Ending::Succeeded | Ending::Failed)
        && took.is_some_and(|took| took > 0)
}
