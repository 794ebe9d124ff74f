//! `longshore record`: records the requests of a program to a cluster.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::recording::{MAX_BODY_LIMIT, RecordOptions, Recorder, Summary};

use super::replay;
use crate::{
    child, config,
    embedded::size,
    error::{Error, Kind, Result},
    interrupt::Interrupt,
    target::ClusterArgs,
    ui,
};

/// Record the requests of a program to a cluster, for tests
///
/// Starts a proxy in front of the cluster, and runs COMMAND with its kubeconfig in KUBECONFIG.
/// Without a command, prints the path of the kubeconfig and runs until Ctrl-C. FILE gets each
/// request with its response; `longshore replay` answers the same requests from it, without
/// a cluster.
///
/// The file has mode 0600. It contains no credentials: the data of Secrets, tokens and private
/// keys are replaced by REDACTED. Other contents, such as ConfigMaps and logs, are recorded as
/// they are. Exec, attach and port-forward work, but are not recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore record pods.jsonl -- kubectl get pods
  longshore record pods.jsonl --context staging -- pytest
  longshore record pods.jsonl   # prints the path of a kubeconfig")]
pub(crate) struct RecordArgs {
    /// File to write; an earlier recording is replaced
    file: PathBuf,
    /// Maximum size of a recorded body or event, at most 16Mi
    #[arg(long, value_name = "SIZE", default_value = "8Mi", value_parser = size)]
    body_limit: u64,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn record(args: RecordArgs) -> Result<ExitCode> {
    let mut options = RecordOptions::default();
    let limit = usize::try_from(args.body_limit).unwrap_or(usize::MAX);
    if limit > MAX_BODY_LIMIT {
        let limit = ui::size(args.body_limit);
        return Err(Error::usage(format!(
            "--body-limit is {limit}, at most 16Mi"
        )));
    }
    options.body_limit = limit;
    let mut signals = Interrupt::listen()?;
    // The embedded cluster runs as long as this value exists.
    let target = args.cluster.open(&config::here()?).await?;
    let cluster = target.cluster().clone();
    let recorder = Recorder::start(cluster, &args.file, options).await;
    let recorder = recorder.map_err(|error| replay::failed(&error))?;
    let code = if args.command.is_empty() {
        ui::line(recorder.kubeconfig().display().to_string());
        ui::flush();
        signals.next().await;
        Ok(0)
    } else {
        let variables = child::kubeconfig_variables(recorder.kubeconfig());
        child::run(&args.command, variables, &mut signals).await
    };
    let summary = recorder.finish().await;
    let is_complete = show(&summary, &args);
    match code? {
        0 if !is_complete => Ok(ExitCode::FAILURE),
        code => Ok(code.into()),
    }
}

/// Prints a summary of the recording. Returns true if the file is complete.
fn show(summary: &Summary, args: &RecordArgs) -> bool {
    let file = args.file.display();
    let requests = ui::count(summary.requests, "request");
    ui::note(format!("recorded {requests} in {file}"));
    if summary.failed > 0 {
        let requests = ui::count(summary.failed, "request");
        ui::warning(format!("the cluster did not answer {requests}"));
    }
    if summary.omitted > 0 {
        let bodies = ui::count(summary.omitted, "content");
        ui::warning(format!(
            "{bodies} left out, each with a reason in the field `omitted`"
        ));
    }
    if let Some(problem) = &summary.incomplete {
        let message = format!("{file} is incomplete: {problem}");
        let hint = "record fewer requests in one file, or free space on its disk";
        ui::error(&Error::new(Kind::Failed, message).hint(hint));
    }
    summary.incomplete.is_none()
}
