//! The decision about a followed run after Ctrl-C or SIGTERM.

use clap::ValueEnum;
use tokio::task::JoinHandle;

use crate::{interrupt::Caught, ui};

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
pub(crate) enum Decision {
    Cancel,
    Detach,
    Continue,
    Leave,
}

/// The decision that the option makes; `None` if the user must be asked.
pub(super) fn decide(on_interrupt: OnInterrupt, caught: Caught) -> Option<Decision> {
    match on_interrupt {
        OnInterrupt::Cancel => Some(Decision::Cancel),
        OnInterrupt::Detach => Some(Decision::Detach),
        OnInterrupt::Ask if caught == Caught::Interrupt && ui::is_interactive() => None,
        // SIGTERM, for example from a shutdown, does not refer to the run.
        OnInterrupt::Ask if caught == Caught::Terminate => Some(Decision::Detach),
        OnInterrupt::Ask => Some(Decision::Cancel),
    }
}

/// A question to the user, while the run continues.
pub(super) struct Question {
    answer: JoinHandle<std::io::Result<String>>,
}

impl Question {
    /// Asks the user for a decision.
    pub(super) fn ask() -> Self {
        // If the run ends first, the thread stays blocked in its read; the program exits without
        // it.
        let answer = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let question = Self { answer };
        question.show();
        question
    }

    /// Prints the question, again after other output.
    pub(super) fn show(&self) {
        ui::prompt("\nDetach (d) or cancel the run (c)? Enter continues, Ctrl-C again detaches: ");
    }

    /// Waits for the answer. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Decision {
        match (&mut self.answer).await {
            Ok(Ok(line)) => match line.trim().to_ascii_lowercase().as_str() {
                "c" | "cancel" => Decision::Cancel,
                "d" | "detach" => Decision::Detach,
                _ => Decision::Continue,
            },
            _ => Decision::Detach,
        }
    }
}
