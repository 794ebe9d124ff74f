//! `longshore diff`: compares two runs.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{
    compare::{self, Comparison},
    metrics::MetricSources,
    runs,
};

use crate::{
    complete, config,
    error::Result,
    metric_columns,
    output::{self, TextFormat},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Compare two runs: results, metrics, options, environment and code
///
/// Prints what differs: the result and what the tasks used; the last values of metrics; options, tags and labels; names of
/// environment variables, whose values are secret; and a unified diff of the code's text files,
/// of at most 2000 lines. Exits with 0 also if the runs differ.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore diff digits-x7k2p last
  longshore diff digits-x7k2p last --no-code
  longshore diff digits-x7k2p last --output json")]
pub(crate) struct DiffArgs {
    /// Run: its name, a prefix of it, or `last`
    #[arg(value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    one: String,
    /// Run to compare it with
    #[arg(value_name = "OTHER", add = ArgValueCompleter::new(complete::runs))]
    other: String,
    /// Print the names of files that differ without their lines
    #[arg(long)]
    no_code: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn diff(args: DiffArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = query(&target, &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn query(target: &Target, args: &DiffArgs) -> Result<()> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let one = runs::find_made(cluster, namespace, &args.one).await?;
    let other = runs::find_made(cluster, namespace, &args.other).await?;
    let outputs = target.outputs();
    let sources = MetricSources {
        logs: true,
        outputs: outputs.as_ref(),
    };
    let comparison = compare::compare(cluster, &one, &other, sources).await?;
    let text = || print(&comparison, args.no_code);
    args.output.print(&comparison, text)
}

/// The maximum number of metrics in the table.
const MOST_METRICS: usize = 200;

fn print_metrics(comparison: &Comparison) {
    let metrics = &comparison.metrics;
    if metrics.is_empty() {
        return;
    }
    let rows = metrics.iter().take(MOST_METRICS).map(|metric| {
        let values = metric
            .values
            .map(|value| value.map(|value| value.to_string()));
        let [one, other] = values;
        let cells = [one, other, metric.signed()];
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        let name = format!("{} {}", metric.task, metric.name);
        std::iter::once(name).chain(cells).collect()
    });
    let [one, other] = &comparison.runs;
    output::table(&["METRIC", one, other, "DIFFERENCE"], rows.collect(), "");
    metric_columns::note_omitted(metrics.len(), MOST_METRICS);
}

fn print(comparison: &Comparison, no_code: bool) {
    let paint = ui::Paint::stdout();
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let changes = comparison.results.iter().chain(&comparison.options);
    let rows = changes.map(|change| {
        let [one, other] = &change.values;
        vec![change.name.clone(), or_none(one), or_none(other)]
    });
    let [one, other] = &comparison.runs;
    let none = "The results and options are equal.";
    output::table(&["", one, other], rows.collect(), none);
    print_metrics(comparison);
    for variable in &comparison.environment {
        let (role, name) = (&variable.role, &variable.name);
        ui::line(format!("{role}: variable {name} {}", variable.change));
    }
    match comparison.same_code {
        Some(true) => ui::line("The code is the same."),
        Some(false) if comparison.files.is_empty() => ui::line("The code differs."),
        Some(false) => {}
        None => ui::line("Only one of the runs has code."),
    }
    for file in &comparison.files {
        ui::line(paint.bold(&format!("{} {}", file.change, file.path)));
        if no_code {
            continue;
        }
        for line in file.diff.iter().flat_map(|diff| diff.lines()) {
            ui::line(match line.as_bytes().first() {
                Some(b'+') => paint.green(line),
                Some(b'-') => paint.red(line),
                Some(b'@') => paint.cyan(line),
                _ => line.to_owned(),
            });
        }
        if let Some(omitted) = &file.omitted {
            ui::line(format!("({omitted})"));
        }
    }
    for unseen in &comparison.unseen {
        ui::warning(format!("not compared: {unseen}"));
    }
}
