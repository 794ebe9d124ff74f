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
use futures::{StreamExt as _, stream};
use longshore::{
    client::Cluster,
    launcher::{
        Run, RunState, RunSummary, config,
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
    owners::Access,
    several_runs::{self, Failures},
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
/// RUN is the name of a run, a prefix of it that no other of your runs has, `last` for your newest
/// run, or a quoted pattern with * and ?. With several names or a pattern, tasks are shown as
/// RUN/ROLE/INDEX.
///
/// CPU and memory of tasks that run come from the cluster's metrics server (metrics.k8s.io) or
/// from the task itself, GPUs from the task itself, which needs the permission pods/exec.
/// docs/usage.md says what each cluster offers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore top
  longshore top last
  longshore top digits-x7k2p --sort memory
  longshore top digits-x7k2p --output json
  longshore top 'sweep-*' --sort cpu")]
pub(crate) struct TopArgs {
    /// Runs: names, prefixes, `last`, or patterns such as 'sweep-*' [default: all active runs]
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
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
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "runs"])]
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

/// The measured usage of a run.
struct Measured {
    run: Run,
    state: RunState,
    usage: RunUsage,
}

/// Returns the names of the runs that the words select; `None` without words. The names stay the
/// same while the table is refreshed.
async fn select(cluster: &Cluster, args: &TopArgs) -> Result<Option<Vec<String>>> {
    if args.runs.is_empty() {
        return Ok(None);
    }
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = &args.runs;
    let chosen = several_runs::choose_made(cluster, &all, namespace, words, Access::Read).await?;
    Ok(Some(
        chosen.iter().map(|run| run.run.name.to_string()).collect(),
    ))
}

/// The current state of the runs with these names, or of all active runs.
async fn find(
    cluster: &Cluster,
    args: &TopArgs,
    names: Option<&[String]>,
) -> Result<Vec<(String, Result<RunSummary>)>> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let listed = (!args.all_namespaces).then_some(namespace);
    let mut all = runs::list(cluster, listed).await?;
    if let Some(names) = names {
        let find = |name: &String| {
            let found = runs::pick(&all, namespace, name, None).cloned();
            (name.clone(), found.map_err(Error::from))
        };
        return Ok(names.iter().map(find).collect());
    }
    let active = RunFilter {
        states: vec![StateFilter::Active],
        ..RunFilter::default()
    };
    all.retain(|run| active.matches(run));
    let found = all.into_iter();
    Ok(found
        .map(|run| (run.run.name.to_string(), Ok(run)))
        .collect())
}

/// Measures the runs. A run that fails does not stop the others.
async fn measure(
    cluster: &Cluster,
    args: &TopArgs,
    names: Option<&[String]>,
) -> Result<Vec<(String, Result<Measured>)>> {
    let detail = match args.output {
        TopFormat::Table => Detail::Current,
        TopFormat::Json | TopFormat::Yaml => Detail::Series,
    };
    let mut found = find(cluster, args, names).await?;
    if found.len() > MOST_RUNS {
        let more = (found.len() - MOST_RUNS) as u64;
        let noun = if names.is_some() { "run" } else { "active run" };
        ui::note(format!("{} not shown", ui::count(more, noun)));
        found.truncate(MOST_RUNS);
    }
    let measuring = stream::iter(found).map(|(name, found)| async move {
        let measured = async {
            let found = found?;
            let usage = usage::of_run(cluster, &found.run, detail).await?;
            Ok(Measured {
                run: found.run,
                state: found.state,
                usage,
            })
        };
        (name, measured.await)
    });
    Ok(measuring.buffered(READERS).collect().await)
}

/// The rows: one per task for named runs, otherwise one per run.
fn rows(measured: &[Measured], args: &TopArgs) -> Vec<Row> {
    let are_several = several_runs::are_several(&args.runs);
    let of_run = |run: &Measured| {
        let name = match args.all_namespaces {
            true => format!("{}/{}", run.run.namespace, run.run.name),
            false => run.run.name.to_string(),
        };
        Row::of_run(name, run.state, &run.usage.tasks)
    };
    let of_tasks = |run: &Measured| -> Vec<Row> {
        let front = are_several.then(|| format!("{}/", run.run.name));
        let front = front.unwrap_or_default();
        let tasks = run.usage.tasks.iter();
        tasks.map(|task| Row::of_task(&front, task)).collect()
    };
    let mut rows: Vec<Row> = match args.runs.is_empty() {
        true => measured.iter().map(of_run).collect(),
        false => measured.iter().flat_map(of_tasks).collect(),
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
    match args.runs.is_empty() {
        true => "No active runs.",
        false => "No task has started.",
    }
}

async fn once(cluster: &Cluster, args: &TopArgs) -> Result<()> {
    let names = select(cluster, args).await?;
    let results = measure(cluster, args, names.as_deref()).await?;
    let mut failures = Failures::of(results.len());
    let measured = results.into_iter();
    let measured: Vec<Measured> = measured
        .filter_map(|(name, result)| failures.take(name, result))
        .collect();
    let failed = failures.result();
    // If the only named run fails, only its error is printed.
    if failed.is_err() && measured.is_empty() && !several_runs::are_several(&args.runs) {
        return failed;
    }
    print(&measured, args)?;
    failed
}

fn print(measured: &[Measured], args: &TopArgs) -> Result<()> {
    for text in unseen(measured) {
        ui::warning(format!("not read: {text}"));
    }
    let format = match args.output {
        TopFormat::Table => {
            let table = rows(measured, args);
            let table = table.iter().map(Row::cells);
            output::table(
                &rows::header(!args.runs.is_empty()),
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
    let names = select(cluster, args).await?;
    let mut screen = Screen::default();
    loop {
        let (mut measured, mut failed) = (Vec::new(), Vec::new());
        for (name, result) in measure(cluster, args, names.as_deref()).await? {
            match result {
                Ok(run) => measured.push(run),
                Err(error) => failed.push((name, error)),
            }
        }
        if measured.is_empty() && !failed.is_empty() {
            return Err(failed.remove(0).1);
        }
        let table = rows(&measured, args);
        let header = rows::header(!args.runs.is_empty());
        let mut all = vec![header.iter().map(|&cell| cell.to_owned()).collect()];
        all.extend(table.iter().map(Row::cells));
        let mut lines = ui::columns(&all);
        if table.is_empty() {
            lines.push(nothing(args).to_owned());
        }
        let failed_lines = failed
            .iter()
            .map(|(name, error)| format!("not read: {name}: {}", error.message()));
        let unseen = unseen(&measured);
        lines.extend(unseen.iter().map(|text| format!("not read: {text}")));
        lines.extend(failed_lines);
        screen.draw(&lines);
        let is_over = !args.runs.is_empty()
            && failed.is_empty()
            && measured.iter().all(|run| run.state.is_over());
        if ui::output_closed() || is_over {
            return Ok(());
        }
        tokio::time::sleep(interval).await;
    }
}
