//! The end of a followed run.

use std::process::ExitCode;

use longshore::{
    client::Cluster,
    launcher::{
        Outcome, Run,
        explain::{Cause, Explanation},
        follow::{self, Ending},
    },
};

use super::wait_until_still;
use crate::{
    error::{Error, Kind, Result, exit_code},
    show::{Show, head},
    ui,
};

/// The outcome if the cluster stopped without reporting the end of the run.
pub(super) fn stopped(how: &str, run: &Run) -> Outcome {
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

pub(super) async fn conclude(
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

pub(super) fn unfollowed(error: follow::Error, run: &Run) -> Error {
    let name = run.name.as_str();
    Error::from(error).hint(format!(
        "the run {name} may still be running: `longshore logs {name} --follow`"
    ))
}
