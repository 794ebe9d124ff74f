//! `longshore replay`: answers recorded requests without a cluster.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use longshore::recording::{self, Recording, Replay, ReplayOptions, Report};
use serde_json::json;

use crate::{
    child,
    error::{Error, Kind, Result},
    interrupt::Interrupt,
    ui,
};

/// The maximum number of requests in a message.
const MAX_LISTED: usize = 20;

/// Answer the requests of a program from a recording, without a cluster
///
/// Runs COMMAND with a kubeconfig in KUBECONFIG, whose server answers the requests that
/// `longshore record` has recorded in FILE. Without a command, prints the path of the
/// kubeconfig and runs until Ctrl-C.
///
/// Requests match by method, path, query and body. The responses to equal requests are used
/// in their order; the last response to a GET request is repeated. A request that was not
/// recorded gets an error with the reason NotRecorded, which names the nearest recorded
/// request, and the exit code is 1 unless that of the command is another error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore replay pods.jsonl -- kubectl get pods
  longshore replay pods.jsonl --strict --output json -- pytest
  longshore replay pods.jsonl   # prints the path of a kubeconfig")]
pub(crate) struct ReplayArgs {
    /// Recording to serve
    file: PathBuf,
    /// Use each response once, and fail if a recorded request is not made
    #[arg(long)]
    strict: bool,
    /// Send events of watches and lines of logs at the recorded times
    #[arg(long)]
    timing: bool,
    /// Match requests with other bodies if none with the same body was recorded
    #[arg(long)]
    ignore_bodies: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Output format of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ReportFormat {
    /// Messages on standard error
    #[default]
    Text,
    /// A line of JSON at the end of standard output, with the fields served, notRecorded and
    /// unused
    Json,
}

/// The failure of a recorder or a replay.
pub(crate) fn failed(error: &recording::Error) -> Error {
    let kind = match error {
        recording::Error::Foreign(_) | recording::Error::Invalid { .. } => Kind::Usage,
        _ => Kind::Failed,
    };
    Error::from_source(kind, error)
}

pub(crate) async fn replay(args: ReplayArgs) -> Result<ExitCode> {
    let mut options = ReplayOptions::default();
    options.strict = args.strict;
    options.timing = args.timing;
    options.ignore_bodies = args.ignore_bodies;
    let mut signals = Interrupt::listen()?;
    let recording = Recording::read(&args.file).map_err(|error| failed(&error))?;
    if recording.is_cut() {
        ui::warning("the last line of the recording is incomplete, and ignored");
    }
    let replay = Replay::serve(recording, options).await;
    let replay = replay.map_err(|error| failed(&error))?;
    let code = if args.command.is_empty() {
        let kubeconfig = replay.kubeconfig().display().to_string();
        match args.output {
            ReportFormat::Text => ui::line(kubeconfig),
            ReportFormat::Json => {
                let line = json!({"kubeconfig": kubeconfig, "url": replay.url()});
                ui::json(&line.to_string());
            }
        }
        ui::flush();
        signals.next().await;
        0
    } else {
        let variables = child::kubeconfig_variables(replay.kubeconfig());
        child::run(&args.command, variables, &mut signals).await?
    };
    let report = replay.report();
    if args.output == ReportFormat::Json {
        let line = serde_json::to_string(&report);
        ui::json(&line.map_err(|error| Error::from_source(Kind::Failed, &error))?);
    } else if let Some(error) = problem(&report, &args) {
        ui::error(&error);
    }
    match code {
        0 if !report.is_complete() => Ok(ExitCode::FAILURE),
        code => Ok(code.into()),
    }
}

/// Returns an error for requests that the replay lacked or that were not made.
fn problem(report: &Report, args: &ReplayArgs) -> Option<Error> {
    let count = |number: usize| ui::count(u64::try_from(number).unwrap_or(u64::MAX), "request");
    let (message, mut lines, hint) = if !report.not_recorded.is_empty() {
        let lines = report.not_recorded.iter();
        let lines: Vec<String> = lines
            .map(|missing| match missing.count {
                1 => format!("{}: {}", missing.request, missing.reason),
                times => format!("{} ({times} times): {}", missing.request, missing.reason),
            })
            .collect();
        (
            format!("not recorded: {}", count(lines.len())),
            lines,
            format!(
                "record again: longshore record {} -- COMMAND",
                args.file.display()
            ),
        )
    } else if !report.is_complete() {
        (
            format!("recorded, but not made: {}", count(report.unused.len())),
            report.unused.clone(),
            "without --strict, this is not an error".to_owned(),
        )
    } else {
        return None;
    };
    if lines.len() > MAX_LISTED {
        let more = lines.len().saturating_sub(MAX_LISTED);
        lines.truncate(MAX_LISTED);
        lines.push(format!("and {more} more: --output json lists all"));
    }
    Some(Error::new(Kind::Failed, message).details(lines).hint(hint))
}
