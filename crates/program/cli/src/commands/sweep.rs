//! `longshore sweep`: the combinations of a sweep with their states and metrics.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use jiff::Timestamp;
use longshore::launcher::{
    metrics::MetricSources,
    runs,
    sweep::{CombinationState, Row},
    sweeps::{self, SweepTable},
};

use crate::{
    complete, config,
    error::{Error, Result},
    metric_columns,
    output::{self, Format},
    target::{self, ClusterArgs, Target},
    ui,
};

/// The maximum length of a value in the table.
const LONGEST_CELL: usize = 40;

/// Print the combinations of a sweep with their states and metrics
///
/// RUN is the name of a sweep or of a retry of it, a prefix of it that no other of your runs has, or
/// `last` for your newest run. The table shows each combination as its last run ran it.
///
/// Metrics are the last values that a task writes to the file LONGSHORE_METRICS, one JSON
/// object per line, which the embedded cluster keeps; and those that `metrics` of
/// longshore.toml or --metric names, in log lines such as loss=0.1.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore sweep last
  longshore sweep last --sort val_loss
  longshore sweep last --sort acc --reverse --output csv
  longshore sweep digits-x7k2p --failed
  longshore sweep digits-x7k2p --output json")]
pub(crate) struct SweepArgs {
    /// Sweep: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Sort by a metric or parameter, the lowest first [default: by index]
    #[arg(long, value_name = "NAME")]
    sort: Option<String>,
    /// Sort the highest first
    #[arg(long, requires = "sort")]
    reverse: bool,
    /// Only combinations that failed
    #[arg(long)]
    failed: bool,
    /// Do not read logs
    #[arg(long)]
    no_logs: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: SweepFormat,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Output formats of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum SweepFormat {
    /// Table.
    #[default]
    Table,
    /// CSV, with a header.
    Csv,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

pub(crate) async fn sweep(args: SweepArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = show(&target, &args) => result,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(target: &Target, args: &SweepArgs) -> Result<()> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let found = runs::find_made(cluster, namespace, &args.run).await?;
    let outputs = target.outputs();
    let sources = MetricSources {
        logs: !args.no_logs,
        outputs: outputs.as_ref(),
    };
    let mut table = sweeps::table(cluster, &found.run, sources).await?;
    if let Some(by) = &args.sort {
        sort(&mut table, by, args.reverse)?;
    }
    if args.failed {
        table
            .rows
            .retain(|row| row.state == CombinationState::Failed);
    }
    for unread in &table.unread {
        ui::warning(format!("not read: {unread}"));
    }
    match args.output {
        SweepFormat::Table => {
            print(&table, Timestamp::now());
            Ok(())
        }
        SweepFormat::Csv => {
            ui::bytes(csv(&table).as_bytes());
            Ok(())
        }
        SweepFormat::Json => output::value(Format::Json, &table.to_json()),
        SweepFormat::Yaml => output::value(Format::Yaml, &table.to_json()),
    }
}

/// Sorts by a parameter or metric.
fn sort(table: &mut SweepTable, by: &str, reverse: bool) -> Result<()> {
    let parameter = table.parameters.iter().position(|name| name == by);
    if parameter.is_none() && !table.metrics.iter().any(|name| name == by) {
        let known = table.parameters.iter().chain(&table.metrics);
        let known: Vec<&str> = known.map(String::as_str).collect();
        return Err(Error::usage(format!(
            "--sort: the sweep has no parameter or metric {by:?}"
        ))
        .hint(format!("use one of {}", known.join(", "))));
    }
    table
        .rows
        .sort_by(|one, other| one.compare(other, by, parameter, reverse));
    Ok(())
}

/// The columns between the parameters and the metrics.
const COLUMNS: [&str; 3] = ["STATE", "EXIT", "TOOK"];

fn print(table: &SweepTable, now: Timestamp) {
    let metrics = metric_columns::columns(&table.metrics);
    let mut header = vec!["INDEX".to_owned()];
    header.extend(table.parameters.iter().cloned());
    header.extend(COLUMNS.map(str::to_owned));
    header.extend(metrics.iter().cloned());
    if !table.retries.is_empty() {
        header.push("RUN".to_owned());
    }
    let header: Vec<String> = header.iter().map(|cell| cut(cell)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = table.rows.iter().map(|row| {
        let mut cells = vec![row.index.to_string()];
        cells.extend(row.values.iter().map(|value| cut(value)));
        cells.extend(state(row, now));
        cells.extend(metrics.iter().map(|name| or_none(row.metric(name))));
        if !table.retries.is_empty() {
            cells.push(row.run.clone());
        }
        cells
    });
    output::table(&header, rows.collect(), "No combination failed.");
    ui::note(table.states());
    metric_columns::note_omitted(table.metrics.len(), metrics.len());
}

fn state(row: &Row, now: Timestamp) -> [String; 3] {
    let end = match row.state {
        CombinationState::Running => Some(now),
        _ => row.finished,
    };
    let took = row.started.zip(end);
    let took = took.map(|(from, to)| ui::span(to.as_second().saturating_sub(from.as_second())));
    let exit = row.exit_code.map(|code| code.to_string());
    [row.state.as_str().to_owned(), or_none(exit), or_none(took)]
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// A text of limited length.
fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST_CELL {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LONGEST_CELL - 1).collect();
    format!("{begin}…")
}

/// The table as CSV.
fn csv(table: &SweepTable) -> String {
    let mut text = String::new();
    let own = ["index", "run", "task"].map(str::to_owned);
    let ends = ["state", "exitCode", "started", "finished"].map(str::to_owned);
    let header = own.into_iter().chain(table.parameters.iter().cloned());
    let header = header.chain(ends).chain(table.metrics.iter().cloned());
    record(header, &mut text);
    for row in &table.rows {
        let time = |time: Option<Timestamp>| time.map_or_else(String::new, |time| time.to_string());
        let exit = row
            .exit_code
            .map_or_else(String::new, |code| code.to_string());
        let begin = [row.index.to_string(), row.run.clone(), row.task.to_string()];
        let end = [
            row.state.as_str().to_owned(),
            exit,
            time(row.started),
            time(row.finished),
        ];
        let cells = begin.into_iter().chain(row.values.iter().cloned());
        let metrics = table
            .metrics
            .iter()
            .map(|name| row.metric(name).unwrap_or_default());
        record(cells.chain(end).chain(metrics), &mut text);
    }
    text
}

/// A record as in RFC 4180.
fn record(cells: impl Iterator<Item = String>, text: &mut String) {
    let quoted = |cell: String| match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    let cells: Vec<String> = cells.map(quoted).collect();
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_quoted_where_necessary() {
        let mut text = String::new();
        let cells = ["a", "b,c", "say \"x\"", "two\nlines"].map(str::to_owned);
        record(cells.into_iter(), &mut text);
        assert_eq!(text, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(cut("ä"), "ä");
        assert_eq!(cut(&"ä".repeat(50)).chars().count(), LONGEST_CELL);
    }
}
