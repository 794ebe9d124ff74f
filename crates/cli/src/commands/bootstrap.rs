//! `longshore bootstrap`: what the launcher has this program do inside pods.
//! Not for people; its only user is the plan of a run.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use longshore::launcher::bootstrap;

use crate::ui;

/// Prepare a task inside its pod
#[derive(Debug, Args)]
pub(crate) struct BootstrapArgs {
    #[command(subcommand)]
    step: Step,
}

/// The steps, in the order in which a pod takes them.
#[derive(Debug, Subcommand)]
enum Step {
    /// Copy this program to where the other containers find it
    Install {
        /// The folder to copy it to
        target: std::path::PathBuf,
    },
    /// Get the bundle, check it, unpack it
    Fetch,
    /// Find the peers, set the frameworks' variables, run the command
    Exec {
        /// The command
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
}

/// Takes the step. Needs no runtime: pods start it often, so it starts fast.
pub(crate) fn bootstrap(args: BootstrapArgs) -> ExitCode {
    let result = match args.step {
        Step::Install { target } => bootstrap::install(&target).map(|()| 0),
        Step::Fetch => bootstrap::fetch().map(|()| 0),
        Step::Exec { command } => bootstrap::exec(&command),
    };
    match result {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            ui::note(format!("longshore: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
