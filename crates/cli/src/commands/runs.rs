//! `longshore runs`: the runs a cluster knows of.

use std::process::ExitCode;

use clap::Args;
use longshore::launcher::{RunName, RunSummary, runs as history};
use serde_json::{Value, json};

use crate::{
    config,
    error::Result,
    output::{self, Format},
    target::ClusterArgs,
    ui,
};

/// List runs and schedules, newest first
///
/// A schedule stands with its times where runs have their tasks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore runs
  longshore runs -A --output json")]
pub(crate) struct RunsArgs {
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// Of all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn runs(args: RunsArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let namespace = args
        .namespace
        .as_deref()
        .unwrap_or_else(|| target.cluster().default_namespace());
    let namespace = (!args.all_namespaces).then_some(namespace);
    let found = history::list(target.cluster(), namespace).await;
    target.close().await?;
    let found = found?;
    match args.output {
        Format::Table | Format::Wide => table(&found, &args),
        Format::Name => found.iter().for_each(|run| ui::line(run.run.name.as_str())),
        Format::Json | Format::Yaml => {
            let values: Vec<Value> = found.iter().map(value).collect();
            output::value(args.output, &values)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(found: &[RunSummary], args: &RunsArgs) {
    let now = jiff::Timestamp::now();
    let wide = args.output == Format::Wide;
    let mut header = vec!["NAME", "STATE", "TASKS", "EXIT", "AGE", "TOOK"];
    if args.all_namespaces {
        header.insert(0, "NAMESPACE");
    }
    if wide {
        header.extend(["CODE", "COMMAND"]);
    }
    let row = |run: &RunSummary| {
        let span = |from: Option<jiff::Timestamp>, to: Option<jiff::Timestamp>| {
            from.zip(to).map_or_else(
                || "-".to_owned(),
                |(from, to)| ui::span(to.as_second() - from.as_second()),
            )
        };
        let exit = run
            .exit_code
            .map_or_else(|| "-".to_owned(), |code| code.to_string());
        let tasks = match &run.schedule {
            Some(schedule) => schedule.cron.clone(),
            None => format!("{}/{}", run.succeeded.0, run.succeeded.1),
        };
        let mut row = vec![
            run.run.name.as_str().to_owned(),
            run.state.as_str().to_owned(),
            tasks,
            exit,
            span(run.created, Some(now)),
            span(run.created, run.finished),
        ];
        if args.all_namespaces {
            row.insert(0, run.run.namespace.clone());
        }
        if wide {
            let bundle = run.bundle.as_deref().unwrap_or("-");
            row.extend([bundle.chars().take(12).collect(), run.command.join(" ")]);
        }
        row
    };
    output::table(&header, found.iter().map(row).collect(), "No runs.");
}

fn value(run: &RunSummary) -> Value {
    let roles: Vec<Value> = run
        .run
        .roles
        .iter()
        .map(|role| json!({"name": role.name, "count": role.count, "service": role.service}))
        .collect();
    json!({
        "name": run.run.name.as_str(),
        "namespace": run.run.namespace,
        "fullName": run.full_name,
        "state": run.state.as_str(),
        "created": run.created,
        "finished": run.finished,
        "exitCode": run.exit_code,
        "succeeded": run.succeeded.0,
        "tasks": run.succeeded.1,
        "roles": roles,
        "command": run.command,
        "bundle": run.bundle,
        "schedule": run.schedule,
        "madeBy": run.run.schedule.as_ref().map(RunName::as_str),
    })
}
