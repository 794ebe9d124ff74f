//! `longshore runs`: lists runs and schedules.

mod everywhere;

use std::{process::ExitCode, time::Duration};

use clap::Args;
use longshore::{
    LabelSelector,
    client::Cluster,
    launcher::{
        RunName, RunSummary,
        runs::{self as history, WatchedRuns},
    },
};
use serde_json::{Value, json};

use crate::{
    config,
    error::{Error, Result},
    output::{self, Format},
    select,
    target::{self, ClusterArgs},
    ui,
};

/// Changes within this time are printed together.
const SETTLE: Duration = Duration::from_millis(100);

/// List runs and schedules, newest first
///
/// For a schedule, the list shows its cron expression instead of tasks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore runs
  longshore runs --watch
  longshore runs -l team=vision
  longshore runs -A --output json
  longshore runs --all-contexts")]
pub(crate) struct RunsArgs {
    /// Filter by labels, as in team=vision,tier!=test
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// After listing, print a row each time a run changes, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,
    /// The runs of all [contexts] of the current folder's longshore.toml; a cluster that does
    /// not answer is reported
    #[arg(long, conflicts_with_all = ["watch", "embedded"])]
    all_contexts: bool,
    /// Output format; with --watch, json is one object per line
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn runs(args: RunsArgs) -> Result<ExitCode> {
    let selector = match &args.selector {
        Some(text) => select::labels(text)?,
        None => LabelSelector::everything(),
    };
    if args.all_contexts {
        let result = tokio::select! {
            result = everywhere::show(&args, &selector) => result,
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
        };
        return result.map(|()| ExitCode::SUCCESS);
    }
    let target = args.cluster.open(&config::here()?).await?;
    let namespace = target::namespace(args.namespace.as_deref(), target.cluster());
    let namespace = (!args.all_namespaces).then_some(namespace);
    let result = match args.watch {
        false => show(target.cluster(), namespace, &selector, &args).await,
        true => tokio::select! {
            result = watch(target.cluster(), namespace, &selector, &args) => result,
            _ = tokio::signal::ctrl_c() => Ok(()),
        },
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &LabelSelector,
    args: &RunsArgs,
) -> Result<()> {
    let found = history::list_matching(cluster, namespace, selector).await?;
    match args.output {
        Format::Table | Format::Wide => {
            let rows = found.iter().map(|run| row(run, args));
            output::table(&header(args), rows.collect(), nothing(args));
        }
        Format::Name => found.iter().for_each(|run| ui::line(run.run.name.as_str())),
        Format::Json | Format::Yaml => {
            let values: Vec<Value> = found.iter().map(value).collect();
            output::value(args.output, &values)?;
        }
    }
    Ok(())
}

fn nothing(args: &RunsArgs) -> &'static str {
    match args.selector {
        Some(_) => "No runs match the selector.",
        None => "No runs.",
    }
}

/// Prints all runs, then each one that changes.
async fn watch(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &LabelSelector,
    args: &RunsArgs,
) -> Result<()> {
    let mut watched = WatchedRuns::start(cluster, namespace, selector).await?;
    let mut shown: Vec<RunSummary> = Vec::new();
    let mut widths = Widths::default();
    if matches!(args.output, Format::Table | Format::Wide) {
        let header = header(args).iter().map(|&cell| cell.to_owned()).collect();
        let rows = watched.now()?;
        let rows = std::iter::once(header).chain(rows.iter().map(|run| row(run, args)));
        let rows: Vec<Vec<String>> = rows.collect();
        // Existing rows are aligned; later ones widen the columns.
        rows.iter().for_each(|row| widths.widen(row));
        if let Some(header) = rows.first() {
            ui::line(ui::Paint::stdout().bold(&widths.line(header)));
        }
    }
    loop {
        let now = watched.now()?;
        // Oldest first, so that the newest change is the last line.
        for run in now.iter().rev().filter(|run| !is_shown(run, &shown)) {
            report("MODIFIED", run, args, &mut widths)?;
        }
        let is_there = |old: &&RunSummary| now.iter().any(|run| same(run, old));
        for run in shown.iter().filter(|old| !is_there(old)) {
            report("DELETED", run, args, &mut widths)?;
        }
        shown = now;
        ui::flush();
        if ui::output_closed() || !watched.changed().await {
            return Ok(());
        }
        tokio::time::sleep(SETTLE).await;
    }
}

fn same(one: &RunSummary, other: &RunSummary) -> bool {
    one.run.name == other.run.name && one.run.namespace == other.run.namespace
}

/// Whether a row has not changed.
fn is_shown(run: &RunSummary, shown: &[RunSummary]) -> bool {
    shown.iter().any(|old| old == run)
}

/// Prints a changed or deleted run.
fn report(change: &str, run: &RunSummary, args: &RunsArgs, widths: &mut Widths) -> Result<()> {
    let is_gone = change == "DELETED";
    match args.output {
        Format::Table | Format::Wide => {
            let mut row = row(run, args);
            if is_gone {
                let state = usize::from(args.all_namespaces) + 1;
                "removed".clone_into(&mut row[state]);
            }
            widths.widen(&row);
            ui::line(widths.line(&row));
        }
        Format::Name => ui::line(run.run.name.as_str()),
        Format::Json => ui::line(json!({"type": change, "run": value(run)}).to_string()),
        Format::Yaml => {
            ui::line("---");
            output::value(Format::Yaml, &json!({"type": change, "run": value(run)}))?;
        }
    }
    Ok(())
}

/// The current column widths.
#[derive(Default)]
struct Widths(Vec<usize>);

impl Widths {
    fn widen(&mut self, row: &[String]) {
        self.0.resize(self.0.len().max(row.len()), 0);
        for (width, cell) in self.0.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn line(&self, row: &[String]) -> String {
        let cells = row.iter().zip(&self.0);
        let cells = cells.map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

fn header(args: &RunsArgs) -> Vec<&'static str> {
    let mut header = vec!["NAME", "STATE", "TASKS", "EXIT", "AGE", "TOOK"];
    if args.all_namespaces {
        header.insert(0, "NAMESPACE");
    }
    if args.output == Format::Wide {
        header.extend(["RESTARTS", "LABELS", "CODE", "COMMAND"]);
    }
    header
}

fn row(run: &RunSummary, args: &RunsArgs) -> Vec<String> {
    let now = jiff::Timestamp::now();
    let span = |from: Option<jiff::Timestamp>, to: Option<jiff::Timestamp>| {
        from.zip(to).map_or_else(
            || "-".to_owned(),
            |(from, to)| ui::span(to.as_second() - from.as_second()),
        )
    };
    let exit = run.exit_code;
    let exit = exit.map_or_else(|| "-".to_owned(), |code| code.to_string());
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
    if args.output == Format::Wide {
        let labels = run
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let labels: Vec<String> = labels.collect();
        row.push(run.restarts.to_string());
        row.push(match labels.is_empty() {
            true => "-".to_owned(),
            false => labels.join(","),
        });
        let bundle = run.bundle.as_deref().unwrap_or("-");
        row.extend([bundle.chars().take(12).collect(), run.command.join(" ")]);
    }
    row
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
        "restarts": run.restarts,
        "roles": roles,
        "labels": run.labels,
        "command": run.command,
        "bundle": run.bundle,
        "schedule": run.schedule,
        "madeBy": run.run.schedule.as_ref().map(RunName::as_str),
    })
}
