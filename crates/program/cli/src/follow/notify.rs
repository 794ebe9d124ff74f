//! Runs the user's program when a followed run ends or waits.

use std::{io, process::Stdio, time::Duration};

use longshore::launcher::{Outcome, Run, explain::Explanation, follow::Ending};
use tokio::process::Command;

use crate::ui;

/// The time limit for the program.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The state of a run for the notification.
pub(super) struct Notice<'a> {
    state: &'static str,
    exit_code: Option<i32>,
    reason: &'a str,
    remedy: &'a str,
}

impl<'a> Notice<'a> {
    pub(super) fn ended(outcome: &'a Outcome) -> Self {
        Self {
            state: match outcome.ending {
                Ending::Succeeded => "succeeded",
                Ending::Failed => "failed",
                Ending::NotStarted => "not-started",
                Ending::Cancelled => "cancelled",
            },
            exit_code: Some(outcome.exit_code),
            reason: &outcome.reason,
            remedy: outcome.remedy.as_deref().unwrap_or_default(),
        }
    }

    /// A task cannot start, for a cause that may be temporary.
    pub(super) fn waiting(sentence: &'a str, why: &'a Explanation) -> Self {
        Self {
            state: "waiting",
            exit_code: None,
            reason: sentence,
            remedy: &why.remedy,
        }
    }

    /// The variables of the program.
    fn variables(&self, run: &Run) -> [(&'static str, String); 6] {
        let code = self.exit_code.map(|code| code.to_string());
        [
            ("LONGSHORE_RUN", run.name.to_string()),
            ("LONGSHORE_NAMESPACE", run.namespace.clone()),
            ("LONGSHORE_STATE", self.state.to_owned()),
            ("LONGSHORE_EXIT_CODE", code.unwrap_or_default()),
            ("LONGSHORE_REASON", without_nul(self.reason)),
            ("LONGSHORE_REMEDY", without_nul(self.remedy)),
        ]
    }
}

/// A variable cannot contain NUL characters, which a task may have printed.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Runs the program and waits for its end. Its output goes to standard error, because standard
/// output has the logs of the run. A failure is a warning.
pub(super) async fn notify(words: &[String], run: &Run, notice: Notice<'_>) {
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(notice.variables(run))
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .kill_on_drop(true);
    let ended = match command.spawn() {
        Ok(mut child) => tokio::time::timeout(TIMEOUT, child.wait()).await,
        Err(error) => {
            return ui::warning(format!("cannot run the notify program {program}: {error}"));
        }
    };
    match ended {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => ui::warning(format!("the notify program {program} failed: {status}")),
        Ok(Err(error)) => ui::warning(format!("the notify program {program}: {error}")),
        Err(_) => ui::warning(format!(
            "the notify program {program} did not end within {} s and was stopped",
            TIMEOUT.as_secs()
        )),
    }
}
