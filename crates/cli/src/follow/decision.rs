//! What happens to a followed run after Ctrl-C or SIGTERM.

use clap::ValueEnum;

use crate::{
    interrupt::{Caught, Interrupt},
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
pub(crate) enum Decision {
    Cancel,
    Detach,
    Continue,
    Leave,
}

/// The user's decision, from the option or a prompt.
pub(super) async fn decide(
    on_interrupt: OnInterrupt,
    caught: Caught,
    interrupt: &mut Interrupt,
) -> Decision {
    match on_interrupt {
        OnInterrupt::Cancel => Decision::Cancel,
        OnInterrupt::Detach => Decision::Detach,
        OnInterrupt::Ask if caught == Caught::Interrupt && ui::is_interactive() => {
            ask(interrupt).await
        }
        // SIGTERM, for example from a shutdown, does not refer to the run.
        OnInterrupt::Ask if caught == Caught::Terminate => Decision::Detach,
        OnInterrupt::Ask => Decision::Cancel,
    }
}

async fn ask(interrupt: &mut Interrupt) -> Decision {
    ui::prompt("\nDetach (d) or cancel the run (c)? Enter continues, Ctrl-C again detaches: ");
    // After Ctrl-C, the thread stays blocked in its read; the program exits without it.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let answer = tokio::select! {
        answer = answer => answer,
        _ = interrupt.next() => return Decision::Detach,
    };
    match answer {
        Ok(Ok(line)) => match line.trim().to_ascii_lowercase().as_str() {
            "c" | "cancel" => Decision::Cancel,
            "d" | "detach" => Decision::Detach,
            _ => Decision::Continue,
        },
        _ => Decision::Detach,
    }
}
