//! Follows a run to its end, and handles Ctrl-C meanwhile.

mod decision;
mod end;

use std::{process::ExitCode, time::Duration};

use longshore::{
    client::Cluster,
    launcher::{
        Event, Follow, FollowOptions, Run, follow,
        runs::{self, WatchedPods},
    },
};
use serde_json::json;
use tokio::time::MissedTickBehavior;

pub(crate) use decision::OnInterrupt;

use self::{
    decision::{Decision, decide},
    end::{conclude, stopped, unfollowed},
};
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
                let decision = if cancelling {
                    Decision::Leave
                } else {
                    printer.pause().await;
                    let decision = decide(on_interrupt, caught, &mut interrupt).await;
                    printer.resume().await;
                    decision
                };
                match decision {
                    Decision::Continue => {}
                    Decision::Leave => {
                        printer.leave(batch).await;
                        return Err(Error::interrupted());
                    }
                    Decision::Detach => {
                        printer.leave(batch).await;
                        left(run, "`longshore logs RUN --follow` shows it");
                        return Ok(exit_code(Kind::Interrupted));
                    }
                    Decision::Cancel => {
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

/// Cancels a run, so that no more tasks of it start.
pub(crate) async fn cancel(cluster: &Cluster, run: &Run) -> Result<()> {
    runs::cancel(cluster, run, jiff::Timestamp::now()).await?;
    Ok(())
}

/// Waits until all pods of a run have ended.
pub(crate) async fn wait_until_still(cluster: &Cluster, run: &Run) -> Result<()> {
    let mut pods = WatchedPods::start(cluster, run).await?;
    match tokio::time::timeout(CANCEL_TIMEOUT, pods.all_ended()).await {
        Ok(ended) => Ok(ended?),
        Err(_) => {
            let (active, name) = (pods.active(), run.name.as_str());
            let text = format!("{active} pods of the run {name} did not end");
            Err(Error::new(Kind::Failed, text).hint("`longshore get pods` shows them"))
        }
    }
}
