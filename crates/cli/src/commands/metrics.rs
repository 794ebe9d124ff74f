//! `longshore metrics`: the last values of the metrics of a run's tasks.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{
    metrics::{self, MetricSources, RunMetrics, shown},
    runs,
};

use crate::{
    complete, config,
    error::{Error, Result},
    metric_columns,
    output::{self, TextFormat},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Print the last values of the metrics of a run's tasks
///
/// Metrics are the numbers that a task appends to the file LONGSHORE_METRICS, one JSON object
/// per line; and those that `metrics` of longshore.toml or --metric names, in log lines such as
/// loss=0.1. Works while the run is active, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore metrics last
  longshore metrics digits-x7k2p --output json")]
pub(crate) struct MetricsArgs {
    /// Run: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Do not read the logs of the tasks
    #[arg(long)]
    no_logs: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    /// Namespace [default: that of the context]
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
    let found = runs::find_made(cluster, namespace, &args.run).await?;
    let outputs = target.outputs();
    let sources = MetricSources {
        logs: !args.no_logs,
        outputs: outputs.as_ref(),
    };
    let read = metrics::of_run(cluster, &found.run, sources).await?;
    for unread in &read.unread {
        ui::warning(format!("not read: {unread}"));
    }
    let json = read.to_json(&found.run);
    args.output.print(&json, || print(&read))
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
