//! Follows a run to its end, and handles Ctrl-C meanwhile.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use longshore::{
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        Event, Follow, FollowOptions, Outcome, Run,
        explain::{Cause, Explanation},
        follow::{self, Ending},
        runs,
    },
};
use serde_json::json;
use tokio::time::MissedTickBehavior;

use crate::{
    error::{Error, Kind, Result, exit_code},
    hints,
    interrupt::{Caught, Interrupt},
    printer::{Batch, Printer},
    show::{EventFormat, Show, head},
    stdin::{self, IgnoredInput},
    target::{Gone, Target},
    ui,
};

/// What Ctrl-C does to a followed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// Ask what to do
    #[default]
    Ask,
    /// Cancel the run
    Cancel,
    /// Leave the run alone
    Detach,
}

/// The user's decision after Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Cancel,
    Detach,
    Continue,
    Leave,
}

/// The next event for a follower.
enum Next {
    Event(Box<Option<Result<Event, follow::Error>>>),
    Caught(Caught),
    /// The printer accepted a batch of lines.
    Written,
    /// It is time to draw progress.
    Draw,
    /// The embedded cluster's process has ended.
    Gone(Gone),
    /// Data arrived on standard input, which is not passed to the task.
    InputIgnored,
}

/// Options of following a run in the terminal.
#[derive(Default)]
pub(crate) struct How {
    pub(crate) format: EventFormat,
    pub(crate) on_interrupt: OnInterrupt,
    /// Standard input, if it is not passed to the task.
    pub(crate) ignored: IgnoredInput,
}

/// The interval between updates of unfinished lines.
const DRAW: Duration = Duration::from_millis(100);
/// How long to wait for events that a cluster sent before it stopped.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a cancelled run may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(60);

/// With JSON output, reports that a run was not started in a `finished` event.
pub(crate) fn report_not_started(error: &Error, format: EventFormat) {
    if format == EventFormat::Json {
        let finished = json!({
            "event": "finished",
            "ending": "notStarted",
            "exitCode": error.kind().code(),
            "reason": hints::complete(error.message()),
            "details": error.details_given().iter().map(|line| hints::complete(line)).collect::<Vec<_>>(),
            "remedy": error.remedy().map(hints::complete),
        });
        ui::json(&finished.to_string());
    }
}

/// Follows a run to its end and returns the exit code.
pub(crate) async fn to_the_end(
    target: &Target,
    run: &Run,
    options: FollowOptions,
    how: How,
    mut interrupt: Interrupt,
) -> Result<ExitCode> {
    let How {
        format,
        on_interrupt,
        mut ignored,
    } = how;
    let cluster = target.cluster();
    let tail = options.tail;
    let options = FollowOptions {
        unfinished: format == EventFormat::Text && ui::draws_progress(),
        ..options
    };
    let mut follow = match Follow::start(cluster, run, options).await {
        Ok(follow) => follow,
        Err(error) => return Err(unfollowed(error, run)),
    };
    let mut batch = Batch::default();
    let mut show = Show::new(run, format, &target.facts(), &mut batch);
    let printer = Printer::start("starting");
    let mut cancelling = false;
    let mut death_reported = false;
    let mut drawn = (String::new(), Vec::new());
    let mut draw = tokio::time::interval(DRAW);
    draw.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outcome = loop {
        let next = tokio::select! {
            biased;
            caught = interrupt.next() => Next::Caught(caught),
            _ = draw.tick(), if ui::draws_progress() => Next::Draw,
            () = printer.write(&mut batch), if !batch.is_empty() => Next::Written,
            event = follow.next(), if !batch.is_full() => Next::Event(Box::new(event)),
            gone = target.gone(&mut death_reported) => Next::Gone(gone),
            () = ignored.arrives() => Next::InputIgnored,
        };
        let mut event = match next {
            Next::Event(event) => *event,
            Next::Written => continue,
            Next::InputIgnored => {
                batch.note(&ui::warned(stdin::IGNORED));
                continue;
            }
            Next::Gone(Gone::Died) => {
                batch.note(&format!(
                    "{} the process of the embedded cluster has ended; {}",
                    head("waiting"),
                    hints::complete("`longshore up` starts it again")
                ));
                continue;
            }
            // Process pending events first: a cluster that shuts down gracefully notifies its
            // followers.
            Next::Gone(Gone::Stopped(how)) => {
                match tokio::time::timeout(LAST_EVENT_TIMEOUT, follow.next()).await {
                    Ok(Some(Ok(event))) => Some(Ok(event)),
                    _ => Some(Ok(Event::Finished(stopped(&how, run)))),
                }
            }
            Next::Draw => {
                let lines = show.unfinished(&follow.unfinished());
                let shown = (show.progress().to_owned(), lines);
                if shown != drawn && printer.show(shown.0.clone(), shown.1.clone()) {
                    drawn = shown;
                }
                continue;
            }
            Next::Caught(caught) => {
                // Ctrl-C during the cancellation: exit without waiting for it.
                let wish = if cancelling {
                    Wish::Leave
                } else {
                    printer.pause().await;
                    let wish = wish(on_interrupt, caught, &mut interrupt).await;
                    printer.resume().await;
                    wish
                };
                match wish {
                    Wish::Continue => {}
                    Wish::Leave => {
                        printer.leave(batch).await;
                        return Err(Error::interrupted());
                    }
                    Wish::Detach => {
                        printer.leave(batch).await;
                        left(run, "`longshore logs RUN --follow` shows it");
                        return Ok(exit_code(Kind::Interrupted));
                    }
                    Wish::Cancel => {
                        cancelling = true;
                        batch.note(&format!("{} {}", head("cancel"), run.name.as_str()));
                        cancel(cluster, run).await?;
                    }
                }
                continue;
            }
        };
        // Write available events together.
        let end = loop {
            match event {
                Some(Ok(event)) => {
                    show.event(&event, &mut batch);
                    if let Event::Finished(outcome) = event {
                        break Some(Ok(Some(outcome)));
                    }
                }
                Some(Err(error)) => break Some(Err(unfollowed(error, run))),
                None => break Some(Ok(None)),
            }
            if batch.is_full() {
                break None;
            }
            match follow.try_next() {
                None => break None,
                next => event = next,
            }
        };
        if let Some(end) = end {
            break end;
        }
    };
    // Print the end after all earlier output. A stopped terminal or a pager may take any time;
    // Ctrl-C ends the wait.
    let finished = printer.finish(batch);
    if let Err(left) = interrupt.unless(finished).await {
        ui::abandon_output();
        return Err(left);
    }
    if ignored.has_come() {
        ui::warning(stdin::IGNORED);
    }
    match outcome? {
        Some(outcome) => conclude(cluster, run, &outcome, &show, tail).await,
        None => Err(Error::new(
            Kind::Cluster,
            "the run's events ended before the run did",
        )),
    }
}

/// Prints that a run continues without this program, and how to follow and stop it. `RUN` in
/// `shows` is replaced by the run's name.
pub(crate) fn left(run: &Run, shows: &str) {
    let name = run.name.as_str();
    let text = format!("RUN continues: {shows}, `longshore cancel RUN` stops it");
    let text = hints::complete(&text.replace("RUN", name));
    ui::note(format!("{} {text}", head("detach")));
}

/// The outcome if the cluster stopped without reporting the end of the run.
fn stopped(how: &str, run: &Run) -> Outcome {
    let name = run.name.as_str();
    let explanation = Explanation {
        kind: Cause::ClusterStopped,
        role: None,
        index: None,
        pod: None,
        cause: how.to_owned(),
        remedy: format!(
            "`longshore why {name}` shows how the run ended; with `retries` it restarts with the cluster"
        ),
        evidence: Vec::new(),
        others: 0,
    };
    Outcome {
        ending: Ending::Failed,
        exit_code: i32::from(Kind::Cluster.code()),
        task: None,
        reason: explanation.sentence(),
        remedy: Some(explanation.remedy.clone()),
        explanation: Some(explanation),
        gaps: 0,
        began: None,
        finished: None,
    }
}

async fn conclude(
    cluster: &Cluster,
    run: &Run,
    outcome: &Outcome,
    show: &Show,
    tail: Option<u64>,
) -> Result<ExitCode> {
    if let Some(gaps) = show.gaps() {
        ui::warning(gaps);
    }
    match outcome.ending {
        Ending::Succeeded => {
            let paint = ui::Paint::stderr();
            let after = match took(outcome) {
                Some(seconds) => format!(" after {}", ui::span(seconds)),
                None => String::new(),
            };
            ui::note(format!(
                "{} {}{after}",
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
    // For a plain exit code, the remedy is to read the log, which was just printed.
    let kind = outcome.explanation.as_ref().map(|known| known.kind);
    let was_shown = kind == Some(Cause::ExitCode) && tail.is_none() && outcome.gaps == 0;
    if let Some(remedy) = outcome.remedy.as_ref().filter(|_| !was_shown) {
        error = error.hint(remedy);
    }
    ui::error(&error);
    // A failure must not exit with 0.
    let code = u8::try_from(outcome.exit_code)
        .ok()
        .filter(|&code| code != 0)
        .unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// The duration of the run from its submission to the end of its last task, in seconds, as in
/// `longshore runs`.
fn took(outcome: &Outcome) -> Option<i64> {
    let (began, finished) = (outcome.began?, outcome.finished?);
    Some(finished.as_second() - began.as_second())
}

fn unfollowed(error: follow::Error, run: &Run) -> Error {
    let name = run.name.as_str();
    let error = match error {
        follow::Error::Cluster(error) => Error::from(error),
        other => Error::from_source(Kind::Cluster, &other),
    };
    error.hint(format!(
        "the run {name} may still be running: `longshore logs {name} --follow`"
    ))
}

/// The user's decision, from the option or a prompt.
async fn wish(on_interrupt: OnInterrupt, caught: Caught, interrupt: &mut Interrupt) -> Wish {
    match on_interrupt {
        OnInterrupt::Cancel => Wish::Cancel,
        OnInterrupt::Detach => Wish::Detach,
        OnInterrupt::Ask if caught == Caught::Interrupt && ui::is_interactive() => {
            ask(interrupt).await
        }
        // SIGTERM, for example from a shutdown, does not refer to the run.
        OnInterrupt::Ask if caught == Caught::Terminate => Wish::Detach,
        OnInterrupt::Ask => Wish::Cancel,
    }
}

async fn ask(interrupt: &mut Interrupt) -> Wish {
    ui::prompt("\nDetach (d) or cancel the run (c)? Enter continues, Ctrl-C again detaches: ");
    // After Ctrl-C, the thread stays blocked in its read; the program exits without it.
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
            _ => Wish::Continue,
        },
        _ => Wish::Detach,
    }
}

/// Cancels a run, so that no more tasks of it start.
pub(crate) async fn cancel(cluster: &Cluster, run: &Run) -> Result<()> {
    runs::cancel(cluster, run, jiff::Timestamp::now()).await?;
    Ok(())
}

/// Waits until all pods of a run have ended.
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
        if begin.elapsed() > CANCEL_TIMEOUT {
            let text = format!("{alive} pods of the run {} did not end", run.name.as_str());
            return Err(Error::new(Kind::Failed, text).hint("`longshore get pods` shows them"));
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}
