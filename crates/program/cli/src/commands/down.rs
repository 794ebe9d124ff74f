//! `longshore down`: stops the embedded cluster and its pods.

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        RunState, RunSummary,
        runs::{self, WatchedPods},
    },
};
use longshore_embedded::{
    Layout,
    daemon::{self, Record, Stop, Stopped},
};

use crate::{
    embedded, env,
    error::{Error, Kind, Result},
    hints, ui,
};

/// The timeout for listing the active runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that the cluster has to report the end of a task, after the task's grace period.
const REPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// The time to wait for tasks without a message.
const SILENT_TIME: Duration = Duration::from_secs(2);
/// The time that followers of these runs have to report the end.
const FOLLOWERS_TIMEOUT: Duration = Duration::from_secs(8);
/// The recorded cause of the end of the cluster.
const CAUSE: &str = "longshore down";
/// The maximum number of runs in the prompt.
const NAMED_RUNS: usize = 10;

/// Stop the embedded cluster and every process it runs
///
/// Objects and logs stay in its data folder, unless it is ephemeral. Runs in progress are
/// stopped permanently, and `longshore runs` and `longshore why` report the cause. Their tasks
/// have their grace periods to end. On a terminal, the command asks for confirmation; otherwise
/// it requires --force. Other pods restart with the cluster if their restart policy allows it.
/// Schedules create no runs until the cluster runs again: the command names them, and on a terminal,
/// it asks, unless --force is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore down
  longshore down --force")]
pub(crate) struct DownArgs {
    /// Stop runs in progress without confirmation
    #[arg(long)]
    force: bool,
    /// Data folder of the embedded cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

pub(crate) async fn down(args: DownArgs) -> Result<ExitCode> {
    let layout = embedded::layout(args.data_dir.as_ref())?;
    let Some(record) = daemon::find(&layout).await?.running() else {
        ui::line("The embedded cluster is not running.");
        return Ok(ExitCode::SUCCESS);
    };
    let agreed = match args.force {
        false => agree(&work_of(&record).await, record.ephemeral).await?,
        true => BTreeSet::new(),
    };
    // No run can start after this call.
    let stop = Stop::begin(&layout).await?;
    if let Some(record) = daemon::find(&layout).await?.running() {
        let Work { runs, schedules } = work_of(&record).await;
        if args.force
            && let Some(text) = about_schedules(&schedules, record.ephemeral)
        {
            ui::note(hints::complete(&text));
        }
        if !args.force
            && let Some(new) = runs.iter().find(|run| !agreed.contains(&name(run)))
        {
            let text = format!("the run {} was started in the meantime", name(new));
            return Err(Error::new(Kind::Failed, text).hint("run `longshore down` again"));
        }
        stop.announce(&record, CAUSE);
        stop_runs(&layout, &record, &runs, &stop).await;
    }
    ui::line(match stop.stop(CAUSE).await? {
        // An on-demand cluster may have stopped by itself.
        Stopped::NotRunning | Stopped::Kindly(_) => "The embedded cluster has stopped.",
        Stopped::Killed(_) => "The embedded cluster did not stop by itself and was killed.",
    });
    Ok(ExitCode::SUCCESS)
}

fn name(run: &RunSummary) -> String {
    run.run.name.to_string()
}

/// Runs and schedules that end with the cluster.
#[derive(Default)]
struct Work {
    /// The active runs.
    runs: Vec<RunSummary>,
    /// The schedules that are not paused.
    schedules: Vec<RunSummary>,
}

/// Returns the work of the cluster. Prints a warning and returns no work if the cluster does not
/// respond.
async fn work_of(record: &Record) -> Work {
    let list = async {
        let cluster = connect(record).await?;
        let found = runs::list(&cluster, None).await.map_err(Error::from);
        cluster.close();
        found
    };
    let found = match tokio::time::timeout(ANSWER_TIMEOUT, list).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            ui::warning(format!("cannot list its runs: {}", error.message()));
            Vec::new()
        }
        Err(_) => {
            ui::warning("cannot list its runs: the cluster does not answer");
            Vec::new()
        }
    };
    let mut work = Work::default();
    for run in found {
        match run.state {
            RunState::Pending | RunState::Running => work.runs.push(run),
            RunState::Scheduled => work.schedules.push(run),
            _ => {}
        }
    }
    work
}

async fn connect(record: &Record) -> Result<Cluster> {
    Ok(Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await?)
}

/// Asks whether to stop the cluster with this work. Returns the names of the runs.
async fn agree(work: &Work, is_ephemeral: bool) -> Result<BTreeSet<String>> {
    let Work { runs, schedules } = work;
    let names = || runs.iter().map(name).collect();
    if runs.is_empty() && schedules.is_empty() {
        return Ok(BTreeSet::new());
    }
    let count = ui::count(runs.len() as u64, "run");
    let verb = if runs.len() == 1 { "is" } else { "are" };
    if !ui::is_interactive() && !runs.is_empty() {
        let text = format!("{count} {verb} in progress on the embedded cluster");
        let of_schedules = about_schedules(schedules, is_ephemeral);
        return Err(Error::new(Kind::Failed, text)
            .details(lines(runs, line).into_iter().chain(of_schedules))
            .hint("`longshore down --force` stops the cluster and these runs"));
    }
    if !runs.is_empty() {
        ui::note(format!("{count} {verb} in progress:"));
    }
    for line in lines(runs, line) {
        ui::note(format!("  {line}"));
    }
    if let Some(text) = about_schedules(schedules, is_ephemeral) {
        ui::note(hints::complete(&text));
    }
    // Schedules are kept, and the next cluster continues them.
    if !ui::is_interactive() {
        return Ok(names());
    }
    let question = match runs.is_empty() {
        true => "Stop the cluster? [y/N] ",
        false => "Stop the cluster and these runs? [y/N] ",
    };
    match ui::confirm(question).await {
        true => Ok(names()),
        false => Err(Error::new(Kind::Interrupted, "the cluster was not stopped")),
    }
}

/// The first runs, each in a line.
fn lines(runs: &[RunSummary], line: fn(&RunSummary) -> String) -> Vec<String> {
    let mut lines: Vec<String> = runs.iter().take(NAMED_RUNS).map(line).collect();
    if let Some(more @ 1..) = runs.len().checked_sub(NAMED_RUNS) {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Describes the effect on the schedules.
fn about_schedules(schedules: &[RunSummary], is_ephemeral: bool) -> Option<String> {
    if schedules.is_empty() {
        return None;
    }
    let count = ui::count(schedules.len() as u64, "schedule");
    let named = |run: &RunSummary| {
        let cron = run.schedule.as_ref().map(|schedule| schedule.cron.as_str());
        format!("{} ({})", run.run.name, cron.unwrap_or_default())
    };
    let names = lines(schedules, named).join(", ");
    let verb = if schedules.len() == 1 { "is" } else { "are" };
    Some(match is_ephemeral {
        true => format!("{count} {verb} lost with the cluster, which is in memory: {names}"),
        false => {
            format!("{count} {verb} stopped until `longshore up` starts the cluster again: {names}")
        }
    })
}

fn line(run: &RunSummary) -> String {
    let since = run.created.map(|created| {
        let age = jiff::Timestamp::now().as_second() - created.as_second();
        format!(", since {}", ui::span(age))
    });
    format!(
        "{} ({}{})",
        run.run.name,
        run.state.as_str(),
        since.unwrap_or_default()
    )
}

/// Stops runs and records the cause for current followers and later queries. Failures are
/// warnings and do not prevent the cluster from stopping.
async fn stop_runs(layout: &Layout, record: &Record, found: &[RunSummary], stop: &Stop) {
    if found.is_empty() {
        return;
    }
    let stopped = async {
        let cluster = connect(record).await?;
        let now = jiff::Timestamp::now();
        for run in found {
            runs::stop_with_cluster(&cluster, &run.run, CAUSE, now).await?;
        }
        let mut pods = Vec::new();
        for run in found {
            pods.push(WatchedPods::start(&cluster, &run.run).await?);
        }
        Ok((cluster, pods))
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, stopped).await {
        Ok(Ok((cluster, mut pods))) => {
            if let Err(error) = tasks_end(&mut pods).await {
                cannot_stop(&error);
            }
            cluster.close();
        }
        Ok(Err(error)) => cannot_stop(&error),
        Err(_) => ui::warning("cannot stop its runs: the cluster does not answer"),
    }
    if let Err(error) = stop.wait_for_users(FOLLOWERS_TIMEOUT).await {
        let dir = layout.dir().display();
        ui::warning(format!("cannot see who uses {dir}: {error}"));
    }
}

fn cannot_stop(error: &Error) {
    ui::warning(format!("cannot stop its runs: {}", error.message()));
}

/// Waits for the end of the tasks, which have their whole grace periods.
async fn tasks_end(pods: &mut [WatchedPods]) -> Result<()> {
    let grace = pods.iter().map(WatchedPods::longest_grace).max();
    let grace = grace.unwrap_or_default();
    let end = async {
        for pods in &mut *pods {
            pods.all_ended().await?;
        }
        Ok(())
    };
    let slow = async {
        tokio::time::sleep(SILENT_TIME).await;
        let limit = ui::span(i64::try_from(grace.as_secs()).unwrap_or(i64::MAX));
        ui::note(format!(
            "waiting up to {limit} for tasks that have received SIGTERM to end"
        ));
        tokio::time::sleep(grace.saturating_sub(SILENT_TIME) + REPORT_TIMEOUT).await;
    };
    tokio::select! {
        ended = end => ended,
        () = slow => Ok(()),
    }
}
