//! From the command line to the exit code.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, error::ErrorKind};

use crate::{
    commands::{self, Command},
    env,
    error::{Kind, exit_code},
    ui,
};

/// Run code on Kubernetes, or on this machine as if it were one
///
/// With no cluster at hand, commands work on an embedded cluster: a Kubernetes
/// API on this machine that runs pods as local processes.
#[derive(Debug, Parser)]
#[command(
    name = "longshore",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  longshore run -- python train.py             run the current folder's code
  longshore run --role worker=2 --role ps=1    a job of several roles
  longshore logs digits --follow               a run's logs
  longshore up                                 an embedded cluster that stays

Exit codes: that of the command where it ran; 2 usage; 3 the cluster does not
answer or refuses; 4 the job could not start; 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => exit_code(Kind::Usage),
            };
        }
    };
    let command = match cli.command {
        // Before anything that takes time: every container of a run does it.
        Command::Bootstrap(args) => return commands::bootstrap::bootstrap(args),
        command => command,
    };
    start_log(command.is_server());
    let outcome = runtime(command.is_server()).and_then(|runtime| {
        let result = runtime.block_on(commands::dispatch(command));
        // Threads that wait for something must not keep the program.
        runtime.shutdown_background();
        result
    });
    ui::flush();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            ui::error(&error);
            exit_code(error.kind())
        }
    }
}

/// The command line's description, for completions.
pub(crate) fn description() -> clap::Command {
    Cli::command()
}

/// A server gets threads; everything else has one, which starts faster.
fn runtime(is_server: bool) -> crate::error::Result<tokio::runtime::Runtime> {
    let mut builder = if is_server {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(processors.max(2));
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().map_err(|error| {
        crate::error::Error::new(Kind::Failed, format!("cannot start the runtime: {error}"))
    })
}

/// Logs go to standard error: a server's always, others' when asked for.
fn start_log(is_server: bool) {
    let filter = match (env::log_filter(), is_server) {
        (Some(filter), _) => filter,
        (None, true) => "info".to_owned(),
        (None, false) => return,
    };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ui::draws_progress() && !env::no_color())
        .init();
}
