//! `longshore runs`: lists runs and schedules.

mod everywhere;

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use clap::Args;
use longshore::{
    LabelSelector,
    client::Cluster,
    launcher::{
        Owner, Ownership, RunSummary,
        config::duration,
        notifier_trouble,
        runs::{self as history, FilterError, RunFilter, RunOrder, StateFilter, WatchedRuns},
        tag::parse_tag,
        terminal_text::escaped,
    },
};
use serde_json::{Value, json};

use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format},
    select,
    target::{self, ClusterArgs},
    ui,
};

/// Changes within this time are printed together.
const SETTLE: Duration = Duration::from_millis(100);
/// The timeout of the search for webhooks that are not called, and the maximum number of reported
/// webhooks.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);
const NAMED_WEBHOOKS: usize = 5;
/// The maximum length of a note in the table, in characters.
const LONGEST_NOTE: usize = 40;

/// List runs and schedules, newest first
///
/// For a schedule, the list shows its cron expression instead of tasks. Options that filter
/// can be combined: the list has the runs that match all of them. If several users share the
/// namespace, the list has their owners.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore runs
  longshore runs --watch
  longshore runs --mine
  longshore runs --state failed --since 2d
  longshore runs --tag dataset=v2 --name 'digits-*' --sort took
  longshore runs -l team=vision
  longshore runs -A --output json
  longshore runs --all-contexts")]
pub(crate) struct RunsArgs {
    /// Filter by labels, as in team=vision,tier!=test
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// Filter by state: active, finished, pending, running, succeeded, failed, cancelled,
    /// scheduled or paused; several are separated by commas
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state)]
    state: Vec<StateFilter>,
    /// Filter by tag; KEY alone for any value; can be repeated
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = tag)]
    tag: Vec<(String, Option<String>)>,
    /// Filter by name: a quoted pattern with * and ?
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Only runs that were created within this time, as in 2d or 90m
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only your runs
    #[arg(long)]
    mine: bool,
    /// The runs of all users, with their owners, also if all are yours
    #[arg(long, conflicts_with = "mine")]
    all_users: bool,
    /// Order of the list
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "ORDER",
        conflicts_with = "watch"
    )]
    sort: Sort,
    /// At most this number of runs, after sorting
    #[arg(long, value_name = "N", conflicts_with = "watch")]
    limit: Option<usize>,
    /// After listing, print a row each time a run changes, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Namespace [default: the namespace of the context]
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

/// Orders of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// Newest first
    #[default]
    Created,
    /// Last finished first, then active runs
    Finished,
    /// By name
    Name,
    /// By state
    State,
    /// Longest first, then active runs
    Took,
}

impl From<Sort> for RunOrder {
    fn from(sort: Sort) -> Self {
        match sort {
            Sort::Created => Self::Created,
            Sort::Finished => Self::Finished,
            Sort::Name => Self::Name,
            Sort::State => Self::State,
            Sort::Took => Self::Took,
        }
    }
}

fn state(text: &str) -> std::result::Result<StateFilter, FilterError> {
    text.parse()
}

fn tag(text: &str) -> std::result::Result<(String, Option<String>), String> {
    let (key, value) = parse_tag(text)?;
    Ok((key, text.contains('=').then_some(value)))
}

impl RunsArgs {
    /// With `--mine`, narrows the selection to the runs of a user.
    fn of_owner(
        &self,
        me: &Owner,
        selector: LabelSelector,
        mut filter: RunFilter,
    ) -> Result<(LabelSelector, RunFilter)> {
        if !self.mine {
            return Ok((selector, filter));
        }
        filter.owner = Some(me.clone());
        Ok((selector.and(me.selector()?), filter))
    }

    /// The columns for these runs.
    fn columns<'a>(
        &self,
        me: Option<&Owner>,
        mut runs: impl Iterator<Item = &'a RunSummary>,
    ) -> Columns {
        let is_others = |run: &RunSummary| {
            let owner = run.owner.as_ref();
            me.is_some_and(|me| me.ownership(owner) == Ownership::Other)
        };
        Columns {
            namespace: self.all_namespaces,
            owner: self.all_users || self.output == Format::Wide || runs.any(is_others),
            wide: self.output == Format::Wide,
        }
    }

    fn filter(&self, now: jiff::Timestamp) -> Result<RunFilter> {
        let since = self.since.as_deref().map(|text| {
            let span = duration("--since", text)
                .map_err(|error| Error::from_source(Kind::Usage, &error))?;
            let before = now.checked_sub(span);
            before.map_err(|error| Error::usage(format!("--since {text}: {error}")))
        });
        let filter = RunFilter {
            states: self.state.clone(),
            since: since.transpose()?,
            tags: self.tag.clone(),
            ..RunFilter::default()
        };
        let Some(pattern) = &self.name else {
            return Ok(filter);
        };
        let wrong = |error: FilterError| Error::usage(format!("--name: {error}"));
        filter.named(pattern).map_err(wrong)
    }
}

pub(crate) async fn runs(args: RunsArgs) -> Result<ExitCode> {
    let selector = match &args.selector {
        Some(text) => select::labels(text)?,
        None => LabelSelector::everything(),
    };
    let filter = args.filter(jiff::Timestamp::now())?;
    if args.all_contexts {
        let result = tokio::select! {
            result = everywhere::show(&args, &selector, &filter) => result,
            _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
        };
        return result.map(|()| ExitCode::SUCCESS);
    }
    let target = args.cluster.open(&config::here()?).await?;
    let namespace = target::namespace(args.namespace.as_deref(), target.cluster());
    let namespace = (!args.all_namespaces).then_some(namespace);
    let result = list(target.cluster(), namespace, (selector, filter), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
    (selector, filter): (LabelSelector, RunFilter),
    args: &RunsArgs,
) -> Result<()> {
    let me = Owner::current(cluster).await?;
    let (selector, filter) = args.of_owner(&me, selector, filter)?;
    let chosen = (&selector, &filter);
    match args.watch {
        false => show(cluster, namespace, chosen, (args, &me)).await,
        true => tokio::select! {
            result = watch(cluster, namespace, chosen, (args, &me)) => result,
            _ = tokio::signal::ctrl_c() => Ok(()),
        },
    }
}

async fn show(
    cluster: &Cluster,
    namespace: Option<&str>,
    (selector, filter): (&LabelSelector, &RunFilter),
    (args, me): (&RunsArgs, &Owner),
) -> Result<()> {
    let mut found = history::list_matching(cluster, namespace, selector).await?;
    found.retain(|run| filter.matches(run));
    RunOrder::from(args.sort).sort(&mut found);
    let all = found.len();
    found.truncate(args.limit.unwrap_or(all));
    if args.output != Format::Name {
        add_webhook_problems(cluster, namespace, &mut found).await;
    }
    match args.output {
        Format::Table | Format::Wide => {
            let columns = args.columns(Some(me), found.iter());
            let rows = found.iter().map(|run| row(run, columns));
            output::table(&header(columns), rows.collect(), nothing(args, filter));
            report_limit(all - found.len());
            report_webhook_problems(&found);
        }
        Format::Name => found.iter().for_each(|run| ui::line(run.run.name.as_str())),
        Format::Json | Format::Yaml => {
            let values: Vec<Value> = found.iter().map(RunSummary::to_json).collect();
            output::value(args.output, &values)?;
        }
    }
    Ok(())
}

/// Adds why webhooks are not called, as far as it can be found out.
async fn add_webhook_problems(cluster: &Cluster, namespace: Option<&str>, runs: &mut [RunSummary]) {
    let troubles = notifier_trouble::troubles(cluster, namespace);
    let Ok(Ok(mut troubles)) = tokio::time::timeout(WEBHOOK_TIMEOUT, troubles).await else {
        return;
    };
    for summary in runs {
        let run = &summary.run;
        summary.webhook_problem = troubles.remove(&(run.namespace.clone(), run.name.to_string()));
    }
}

fn report_webhook_problems(runs: &[RunSummary]) {
    let known = runs
        .iter()
        .filter_map(|run| Some((&run.run.name, run.webhook_problem.as_ref()?)));
    let known: Vec<_> = known.collect();
    for (name, problem) in known.iter().take(NAMED_WEBHOOKS) {
        ui::warning(format!("{name}: {problem}"));
    }
    if let Some(more @ 1..) = known.len().checked_sub(NAMED_WEBHOOKS) {
        ui::warning(format!(
            "webhooks of {more} more runs are not called; `longshore why RUN` says why"
        ));
    }
}

fn report_limit(more: usize) {
    if more > 0 {
        let more = ui::count(more as u64, "run");
        ui::note(format!("{more} not shown (--limit)"));
    }
}

fn nothing(args: &RunsArgs, filter: &RunFilter) -> &'static str {
    match (&args.selector, filter.is_empty()) {
        (Some(_), true) => "No runs match the selector.",
        (_, false) => "No runs match.",
        (None, true) => "No runs.",
    }
}

/// Prints all runs, then each one that changes.
async fn watch(
    cluster: &Cluster,
    namespace: Option<&str>,
    (selector, filter): (&LabelSelector, &RunFilter),
    (args, me): (&RunsArgs, &Owner),
) -> Result<()> {
    let mut watched = WatchedRuns::start(cluster, namespace, selector).await?;
    let mut shown: Vec<RunSummary> = Vec::new();
    let mut widths = Widths::default();
    let rows = now(&watched, filter)?;
    let columns = args.columns(Some(me), rows.iter());
    if matches!(args.output, Format::Table | Format::Wide) {
        let header = header(columns)
            .iter()
            .map(|&cell| cell.to_owned())
            .collect();
        let rows = std::iter::once(header).chain(rows.iter().map(|run| row(run, columns)));
        let rows: Vec<Vec<String>> = rows.collect();
        // Existing rows are aligned; later ones widen the columns.
        rows.iter().for_each(|row| widths.widen(row));
        if let Some(header) = rows.first() {
            ui::line(ui::Paint::stdout().bold(&widths.line(header)));
        }
    }
    loop {
        let now = now(&watched, filter)?;
        // Oldest first, so that the newest change is the last line.
        for run in now.iter().rev().filter(|run| !is_shown(run, &shown)) {
            report("MODIFIED", run, (args.output, columns), &mut widths)?;
        }
        let is_there = |old: &&RunSummary| now.iter().any(|run| same(run, old));
        for run in shown.iter().filter(|old| !is_there(old)) {
            report("DELETED", run, (args.output, columns), &mut widths)?;
        }
        shown = now;
        ui::flush();
        if ui::output_closed() || !watched.changed().await {
            return Ok(());
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// The current runs that match.
fn now(watched: &WatchedRuns, filter: &RunFilter) -> Result<Vec<RunSummary>> {
    let mut runs = watched.now()?;
    runs.retain(|run| filter.matches(run));
    Ok(runs)
}

fn same(one: &RunSummary, other: &RunSummary) -> bool {
    one.run.name == other.run.name && one.run.namespace == other.run.namespace
}

/// Returns true if a row has not changed.
fn is_shown(run: &RunSummary, shown: &[RunSummary]) -> bool {
    shown.iter().any(|old| old == run)
}

/// Prints a changed or deleted run.
fn report(
    change: &str,
    run: &RunSummary,
    (format, columns): (Format, Columns),
    widths: &mut Widths,
) -> Result<()> {
    let is_gone = change == "DELETED";
    match format {
        Format::Table | Format::Wide => {
            let mut row = row(run, columns);
            if is_gone {
                let state = usize::from(columns.namespace) + 1;
                "removed".clone_into(&mut row[state]);
            }
            widths.widen(&row);
            ui::line(widths.line(&row));
        }
        Format::Name => ui::line(run.run.name.as_str()),
        Format::Json => ui::line(json!({"type": change, "run": run.to_json()}).to_string()),
        Format::Yaml => {
            ui::line("---");
            output::value(Format::Yaml, &json!({"type": change, "run": run.to_json()}))?;
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

/// The columns that only some lists have.
#[derive(Debug, Clone, Copy)]
struct Columns {
    namespace: bool,
    owner: bool,
    wide: bool,
}

fn header(columns: Columns) -> Vec<&'static str> {
    let mut header = vec!["NAME", "STATE", "TASKS", "EXIT", "AGE", "TOOK"];
    if columns.namespace {
        header.insert(0, "NAMESPACE");
    }
    if columns.owner {
        header.push("OWNER");
    }
    if columns.wide {
        header.extend(["RESTARTS", "TAGS", "LABELS", "CODE", "COMMAND", "NOTE"]);
    }
    header
}

fn row(run: &RunSummary, columns: Columns) -> Vec<String> {
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
    if columns.namespace {
        row.insert(0, run.run.namespace.clone());
    }
    if columns.owner {
        let owner = run.owner.as_ref();
        row.push(owner.map_or_else(|| "-".to_owned(), ToString::to_string));
    }
    if columns.wide {
        row.push(run.restarts.to_string());
        row.extend([pairs(&run.tags), pairs(&run.labels)]);
        let bundle = run.bundle.as_deref().unwrap_or("-");
        row.extend([bundle.chars().take(12).collect(), run.command.join(" ")]);
        row.push(short_note(run.note.as_deref()));
    }
    row
}

/// `a=1,b=2`, or `-`. A tag without a value is its key.
fn pairs(pairs: &BTreeMap<String, String>) -> String {
    let pairs = pairs.iter().map(|(key, value)| match value.is_empty() {
        true => key.clone(),
        false => format!("{key}={value}"),
    });
    let pairs: Vec<String> = pairs.collect();
    match pairs.is_empty() {
        true => "-".to_owned(),
        false => pairs.join(","),
    }
}

/// The beginning of the first line of a note, or `-`.
fn short_note(note: Option<&str>) -> String {
    let Some(line) = note.and_then(|note| note.lines().next()) else {
        return "-".to_owned();
    };
    let begin: String = line.chars().take(LONGEST_NOTE).collect();
    match note.is_some_and(|note| note.len() > begin.len()) {
        true => format!("{}…", escaped(&begin)),
        false => escaped(&begin).to_string(),
    }
}
