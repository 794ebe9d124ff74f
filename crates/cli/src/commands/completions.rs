//! `longshore completions`: what a shell needs to complete our arguments.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::{app, error::Result, ui};

/// Write a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(longshore completions bash)
  longshore completions zsh > ~/.zfunc/_longshore")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut app::description(),
        "longshore",
        &mut script,
    );
    ui::bytes(&script);
    Ok(ExitCode::SUCCESS)
}
