//! `longshore completions`: the script by which a shell completes our arguments.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::{
    complete,
    error::{Error, Kind, Result},
    ui,
};

/// Print a completion script for a shell
///
/// The script completes verbs and options, and asks the cluster for the names of runs,
/// tasks, pods, kinds and objects. It calls this program: print it again after an
/// upgrade, or let the shell read it at each start as in the first example.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(longshore completions bash)                # in ~/.bashrc
  source <(longshore completions zsh)                 # in ~/.zshrc, after compinit
  longshore completions fish | source                 # in ~/.config/fish/config.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let shell = args.shell.to_string();
    let script = complete::script(&shell, &program()).ok_or_else(|| {
        Error::new(
            Kind::Failed,
            format!("there is no completion script for {shell}"),
        )
    })?;
    ui::bytes(&script);
    Ok(ExitCode::SUCCESS)
}

/// Returns the word with which the script calls this program: its name, unless it was called by a
/// path.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let path = std::path::Path::new(&called);
    let absolute = match path.components().count() {
        0 | 1 => None,
        _ => std::path::absolute(path).ok(),
    };
    absolute.map_or_else(|| "longshore".to_owned(), |path| path.display().to_string())
}
