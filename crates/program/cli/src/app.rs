//! Parses the command line, runs the command, and returns the exit code.

use std::{
    error::Error as _,
    process::ExitCode,
    sync::{Arc, Barrier, Mutex},
    time::Duration,
};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, error::ErrorKind};
use longshore::launcher::{config::ConfigError, store::report_waits};
use longshore_embedded::{daemon::ClusterLog, envtest::Invocation};

use crate::{
    commands::{self, Command, bootstrap::BootstrapArgs},
    complete, env,
    error::{Error, Kind, exit_code},
    help_groups, ui, verbs,
};

/// Run code on Kubernetes, or on an embedded cluster on this machine
///
/// Without --context, --kubeconfig or a longshore.toml that names a cluster, commands use
/// the embedded cluster: a Kubernetes API server on this machine that runs pods as local
/// processes. It needs no Docker, kind or minikube. A command starts it if needed;
/// `longshore status` shows whether it runs and until when.
#[derive(Debug, Parser)]
#[command(
    name = "longshore",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  longshore run -- python train.py             run the current folder's code
  longshore run --role worker=2 -- hostname    run several tasks
  longshore logs last                          print the logs of your newest run
  longshore up                                 start an embedded cluster that stays

Exit codes: the command's own if it ran; 1 failed; 2 usage; 3 cluster unreachable,
access denied, or cluster stopped; 4 the job could not start; 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs the program with the arguments of this process. Returns its exit code.
pub fn main() -> ExitCode {
    report_file_size_limit();
    if let Some(program) = Invocation::of(std::env::args_os()) {
        return envtest_program(program);
    }
    if let Some(args) = BootstrapArgs::of(std::env::args_os()) {
        report_waits(|line| ui::note(format!("longshore: {line}")));
        return commands::bootstrap::bootstrap(args);
    }
    complete::answer_shell(description);
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            let mut error = with_plain_usage(error);
            verbs::suggest(&mut error);
            let arguments: Vec<String> = std::env::args_os()
                .skip(1)
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let misplaced = commands::run::misplaced_command(&arguments);
            match (invalid_option(&error), misplaced) {
                (Some(invalid), _) => ui::error(&invalid),
                (None, Some(misplaced)) if error.kind() == ErrorKind::UnknownArgument => {
                    ui::error(&misplaced);
                }
                _ => print(&error),
            }
            return finish(match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => exit_code(Kind::Usage),
            });
        }
    };
    let command = cli.command;
    report_waits(|line| ui::warning(line));
    start_log(&command);
    let outcome = runtime(command.serves()).and_then(|runtime| {
        let result = runtime.block_on(commands::dispatch(command));
        // Blocked threads must not prevent the program from exiting.
        runtime.shutdown_background();
        result
    });
    finish(match outcome {
        Ok(code) => code,
        Err(error) => {
            ui::flush();
            ui::error(&error);
            exit_code(error.kind())
        }
    })
}

/// Writes all output, and reports if it could not be written: a success without its output is a
/// failure.
fn finish(code: ExitCode) -> ExitCode {
    ui::flush();
    let Some(error) = ui::output_error() else {
        return code;
    };
    let message = format!("cannot write to standard output: {error}");
    ui::error(&Error::new(Kind::Failed, message).hint("the output is incomplete"));
    if code == ExitCode::SUCCESS {
        exit_code(Kind::Failed)
    } else {
        code
    }
}

/// Prints the help, the version, or an error of the command line.
fn print(error: &clap::Error) {
    let outcome = error.print();
    if !error.use_stderr()
        && let Err(error) = outcome
    {
        ui::output_failed(error);
    }
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) an error, which is reported
/// with a remedy. Otherwise, a signal would kill the program without a message. Programs that it
/// starts keep the signal.
fn report_file_size_limit() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Runs a program of envtest, under whose name this program was started.
fn envtest_program(program: Invocation) -> ExitCode {
    if let Some(help) = program.help() {
        ui::bytes(help.as_bytes());
        return finish(ExitCode::SUCCESS);
    }
    let outcome = runtime(true).and_then(|runtime| {
        let result = runtime.block_on(program.run(|note| ui::note(note)));
        runtime.shutdown_background();
        result.map_err(|error| Error::from_source(Kind::Failed, &error))
    });
    finish(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::error(&error);
            exit_code(error.kind())
        }
    })
}

/// The error for an invalid option of a run, without clap's usage, as for an invalid value in
/// longshore.toml.
fn invalid_option(error: &clap::Error) -> Option<Error> {
    let invalid = error.source()?.downcast_ref::<ConfigError>()?;
    Some(Error::from_source(Kind::Usage, invalid))
}

/// Replaces the usage line of an error with the usage line of the command's help, and adds the tips
/// for the command. clap's own line also shows the options that the environment sets.
fn with_plain_usage(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    if error.get(ContextKind::Usage).is_none() {
        return error;
    }
    let mut program = description();
    program.build();
    let words = std::env::args_os().skip(1);
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let verb = words.find(|word| !word.starts_with('-'));
    let verb = verb.and_then(|word| program.find_subcommand_mut(word));
    if let Some(verb) = verb {
        let usage = ContextValue::StyledStr(verb.render_usage());
        error.insert(ContextKind::Usage, usage);
        verbs::suggest_for_several(&mut error, verb.get_name());
    }
    error
}

/// Parses the arguments of this process.
fn parse() -> Result<Cli, clap::Error> {
    let mut matches = description().try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut description()))
}

/// The description of the command line.
pub(crate) fn description() -> clap::Command {
    help_groups::with_groups(Cli::command())
}

/// A multi-threaded runtime for servers, and a single-threaded one otherwise, which starts
/// faster.
fn runtime(is_server: bool) -> crate::error::Result<tokio::runtime::Runtime> {
    let mut builder = if is_server {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(processors.max(2));
        builder.thread_name(SERVER_THREADS);
        builder.thread_keep_alive(ALWAYS);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().map_err(|error| {
        crate::error::Error::new(Kind::Failed, format!("cannot start the runtime: {error}"))
    })?;
    if is_server {
        reserve_threads(&runtime);
    }
    Ok(runtime)
}

/// The name of a server's threads.
const SERVER_THREADS: &str = "longshore-run";
/// A duration that is longer than any process runs.
const ALWAYS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// The number of threads for blocking work that a server always has.
const RESERVED_THREADS: usize = 4;

/// Starts threads for blocking work in advance: pods can use up the threads of the system, and the
/// runtime panics if it cannot start its first one.
fn reserve_threads(runtime: &tokio::runtime::Runtime) {
    let barrier = Arc::new(Barrier::new(RESERVED_THREADS));
    for _ in 0..RESERVED_THREADS {
        let barrier = barrier.clone();
        runtime.spawn_blocking(move || barrier.wait());
    }
}

/// Writes logs to standard error: always for servers, and for other commands if the environment
/// enables them. A background cluster writes to its own log file, which is rotated.
fn start_log(command: &Command) {
    let filter = match (env::log_filter(), command.is_server()) {
        (Some(filter), _) => filter,
        (None, true) => "info".to_owned(),
        (None, false) => return,
    };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    let log = command.log_folder().map(|layout| ClusterLog::open(&layout));
    match log {
        Some(Ok(log)) => builder.with_writer(Mutex::new(log)).with_ansi(false).init(),
        // The start of the cluster reports the error.
        _ => builder
            .with_writer(std::io::stderr)
            .with_ansi(ui::draws_progress() && !env::no_color())
            .init(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The number of this process's threads that a server's runtime has started.
    fn server_threads() -> usize {
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            threads.map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
        let is_server =
            |name: &Option<String>| name.as_deref().map(str::trim) == Some(SERVER_THREADS);
        names.filter(is_server).count()
    }

    #[test]
    fn a_server_has_threads_for_blocking_work_before_there_is_any() {
        let _runtime = runtime(true).unwrap();
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let expected = processors.max(2) + RESERVED_THREADS;
        let begin = std::time::Instant::now();
        while server_threads() < expected {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
