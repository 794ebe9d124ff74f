//! `longshore top`: what runs and their tasks use.

mod rows;
mod screen;

use std::{
    io::{IsTerminal as _, stdout},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use longshore::{
    client::Cluster,
    launcher::{
        Run, RunState, config,
        runs::{self, RunFilter, StateFilter},
        usage::{self, Detail, RunUsage},
    },
};
use serde_json::{Value, json};

use rows::Row;
use screen::Screen;

use crate::{
    complete,
    config::here,
    error::{Error, Kind, Result},
    output::{self, Format},
    target::{self, ClusterArgs},
    ui,
};

/// The maximum number of runs that are measured.
const MOST_RUNS: usize = 50;
/// The number of runs that are measured at the same time.
const READERS: usize = 4;

/// Show CPU, memory and GPUs that runs and their tasks use
///
/// With RUN, shows each of its tasks, also those that have ended; otherwise, all active runs.
/// In a terminal, the table is refreshed until Ctrl-C.
///
/// CPU and memory of tasks that run come from the cluster's metrics server (metrics.k8s.io) or
/// from the task itself, GPUs from the task itself, which needs the permission pods/exec.
/// docs/usage.md says what each cluster offers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore top
  longshore top last
  longshore top digits-x7k2p --sort memory
  longshore top digits-x7k2p --output json")]
pub(crate) struct TopArgs {
    /// Run: its name, a prefix of it, or `last` [default: all active runs]
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: Option<String>,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t, value_name = "ORDER")]
    sort: rows::Sort,
    /// Print the table once, also in a terminal
    #[arg(long)]
    once: bool,
    /// Time between refreshes
    #[arg(long, value_name = "TIME", default_value = "2s")]
    interval: String,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TopFormat,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "run"])]
    all_namespaces: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum TopFormat {
    /// Table.
    #[default]
    Table,
    /// JSON, with the series of each task.
    Json,
    /// YAML, with the series of each task.
    Yaml,
}

pub(crate) async fn top(args: TopArgs) -> Result<ExitCode> {
    let interval = config::duration("--interval", &args.interval)
        .map_err(|error| Error::from_source(Kind::Usage, &error))?;
    let target = args.cluster.open(&here()?).await?;
    let repeats = args.output == TopFormat::Table && !args.once && stdout().is_terminal();
    let cluster = target.cluster();
    let result = tokio::select! {
        result = async {
            match repeats {
                true => refresh(cluster, &args, interval).await,
                false => once(cluster, &args).await,
            }
        } => result,
        _ = tokio::signal::ctrl_c() => match repeats {
            true => Ok(()),
            false => Err(Error::interrupted()),
        },
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

/// What a run uses.
struct Measured {
    run: Run,
    state: RunState,
    usage: RunUsage,
}

async fn measure(cluster: &Cluster, args: &TopArgs) -> Result<Vec<Measured>> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let detail = match args.output {
        TopFormat::Table => Detail::Current,
        TopFormat::Json | TopFormat::Yaml => Detail::Series,
    };
    let mut found = match &args.run {
        Some(name) => vec![runs::find_made(cluster, namespace, name).await?],
        None => {
            let namespace = (!args.all_namespaces).then_some(namespace);
            let active = RunFilter {
                states: vec![StateFilter::Active],
                ..RunFilter::default()
            };
            let mut all = runs::list(cluster, namespace).await?;
            all.retain(|run| active.matches(run));
            all
        }
    };
    if found.len() > MOST_RUNS {
        let more = (found.len() - MOST_RUNS) as u64;
        ui::note(format!("{} not shown", ui::count(more, "active run")));
        found.truncate(MOST_RUNS);
    }
    let measuring = stream::iter(found).map(|found| async move {
        let usage = usage::of_run(cluster, &found.run, detail).await?;
        Ok::<_, Error>(Measured {
            run: found.run,
            state: found.state,
            usage,
        })
    });
    measuring.buffered(READERS).try_collect().await
}

/// The rows: tasks of the run, or runs.
fn rows(measured: &[Measured], args: &TopArgs) -> Vec<Row> {
    let mut rows: Vec<Row> = match args.run {
        Some(_) => measured
            .iter()
            .flat_map(|run| run.usage.tasks.iter().map(Row::of_task))
            .collect(),
        None => measured
            .iter()
            .map(|run| {
                let name = match args.all_namespaces {
                    true => format!("{}/{}", run.run.namespace, run.run.name),
                    false => run.run.name.to_string(),
                };
                Row::of_run(name, run.state, &run.usage.tasks)
            })
            .collect(),
    };
    args.sort.sort(&mut rows);
    rows
}

fn unseen(measured: &[Measured]) -> Vec<String> {
    let mut unseen: Vec<String> = measured
        .iter()
        .flat_map(|run| run.usage.unseen.iter().cloned())
        .collect();
    unseen.sort();
    unseen.dedup();
    unseen
}

fn nothing(args: &TopArgs) -> &'static str {
    match args.run {
        Some(_) => "No task has started.",
        None => "No active runs.",
    }
}

async fn once(cluster: &Cluster, args: &TopArgs) -> Result<()> {
    let measured = measure(cluster, args).await?;
    for text in unseen(&measured) {
        ui::warning(format!("not read: {text}"));
    }
    let format = match args.output {
        TopFormat::Table => {
            let table = rows(&measured, args);
            let table = table.iter().map(Row::cells);
            output::table(
                &rows::header(args.run.is_some()),
                table.collect(),
                nothing(args),
            );
            return Ok(());
        }
        TopFormat::Json => Format::Json,
        TopFormat::Yaml => Format::Yaml,
    };
    let runs = measured.iter().map(|run| {
        let tasks: Vec<Value> = run
            .usage
            .tasks
            .iter()
            .map(usage::TaskUsage::to_json)
            .collect();
        json!({
            "run": run.run.name.as_str(),
            "namespace": run.run.namespace,
            "state": run.state.as_str(),
            "tasks": tasks,
            "unseen": run.usage.unseen,
        })
    });
    output::value(format, &runs.collect::<Vec<_>>())
}

/// Draws the table again and again.
async fn refresh(cluster: &Cluster, args: &TopArgs, interval: Duration) -> Result<()> {
    let mut screen = Screen::default();
    loop {
        let measured = measure(cluster, args).await?;
        let table = rows(&measured, args);
        let header = rows::header(args.run.is_some());
        let mut all = vec![header.iter().map(|&cell| cell.to_owned()).collect()];
        all.extend(table.iter().map(Row::cells));
        let mut lines = ui::columns(&all);
        if table.is_empty() {
            lines.push(nothing(args).to_owned());
        }
        lines.extend(
            unseen(&measured)
                .iter()
                .map(|text| format!("not read: {text}")),
        );
        screen.draw(&lines);
        if ui::output_closed()
            || (args.run.is_some() && measured.iter().all(|run| run.state.is_over()))
        {
            return Ok(());
        }
        tokio::time::sleep(interval).await;
    }
}
