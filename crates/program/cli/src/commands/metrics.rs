//! `longshore metrics`: the last values of the metrics of the tasks of runs.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{
    RunSummary,
    metrics::{self, MetricSources, RunMetrics, shown},
    runs,
};
use serde_json::Value;

use crate::{
    complete, config,
    error::{Error, Result},
    metric_columns,
    output::{self, TextFormat},
    owners::Access,
    several_runs,
    target::{self, ClusterArgs, Target},
    ui,
};

/// Print the last values of the metrics of the tasks of runs
///
/// Metrics are the numbers that a task appends to the file LONGSHORE_METRICS, one JSON object
/// per line; and those that `metrics` of longshore.toml or --metric names, in log lines such as
/// loss=0.1. Works while the run is active, too.
///
/// RUN is the name of a run, a prefix of it that no other of your runs has, `last` for your newest
/// run, or a quoted pattern with * and ?. With several names or a pattern, each table begins
/// with the name of its run, and JSON and YAML are a list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore metrics last
  longshore metrics digits-x7k2p --output json
  longshore metrics 'sweep-*'")]
pub(crate) struct MetricsArgs {
    /// Runs: names, prefixes, `last`, or patterns such as 'sweep-*'
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    /// Do not read the logs of the tasks
    #[arg(long)]
    no_logs: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn metrics(args: MetricsArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = show(&target, &args) => result,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(target: &Target, args: &MetricsArgs) -> Result<()> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = &args.runs;
    let chosen = several_runs::choose_made(cluster, &all, namespace, words, Access::Read).await?;
    let (answers, result) = several_runs::each(&chosen, |run| read(target, args, run)).await;
    let are_several = several_runs::are_several(words);
    for (run, metrics) in &answers {
        let front = are_several.then(|| format!("{}: ", run.run.name));
        let front = front.unwrap_or_default();
        for unread in &metrics.unread {
            ui::warning(format!("{front}not read: {unread}"));
        }
    }
    match (&answers[..], are_several) {
        ([(run, metrics)], false) => {
            args.output
                .print(&metrics.to_json(&run.run), || print(metrics))?;
        }
        ([], false) => {}
        _ => {
            let json = answers
                .iter()
                .map(|(run, metrics)| metrics.to_json(&run.run));
            let json: Vec<Value> = json.collect();
            args.output.print(&json, || print_all(&answers))?;
        }
    }
    result
}

async fn read<'a>(
    target: &Target,
    args: &MetricsArgs,
    run: &'a RunSummary,
) -> Result<(&'a RunSummary, RunMetrics)> {
    let outputs = target.outputs();
    let sources = MetricSources {
        logs: !args.no_logs,
        outputs: outputs.as_ref(),
    };
    let read = metrics::of_run(target.cluster(), &run.run, sources).await?;
    Ok((run, read))
}

fn print_all(answers: &[(&RunSummary, RunMetrics)]) {
    for (n, (run, metrics)) in answers.iter().enumerate() {
        if n > 0 {
            ui::line("");
        }
        ui::line(run.run.name.as_str());
        print(metrics);
    }
}

fn print(read: &RunMetrics) {
    let names = read.names();
    let kept = metric_columns::columns(&names);
    let header: Vec<&str> = std::iter::once("TASK")
        .chain(kept.iter().copied())
        .collect();
    let rows = read.tasks.iter().map(|task| {
        let values = kept.iter().map(|name| task.values.get(name));
        let values = values.map(|value| value.map_or_else(|| "-".to_owned(), shown));
        std::iter::once(task.task.to_string())
            .chain(values)
            .collect()
    });
    let none = match read.unread.is_empty() {
        true => "No task has written metrics.",
        false => "No metrics could be read.",
    };
    output::table(&header, rows.collect(), none);
    metric_columns::note_omitted(names.len(), kept.len());
}
