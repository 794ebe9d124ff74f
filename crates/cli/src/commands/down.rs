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
    ui,
};

/// The timeout for listing the active runs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the cluster may take to report the end of a task, after its grace period.
const REPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long to wait for tasks without a message.
const SILENT_TIME: Duration = Duration::from_secs(2);
/// How long followers of these runs may take to report the end.
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
        false => agree(&in_progress(&record).await)?,
        true => BTreeSet::new(),
    };
    // From here on, no run can start.
    let stop = Stop::begin(&layout).await?;
    if let Some(record) = daemon::find(&layout).await?.running() {
        let runs = in_progress(&record).await;
        if !args.force
            && let Some(new) = runs.iter().find(|run| !agreed.contains(&name(run)))
        {
            let text = format!("the run {} was started in the meantime", name(new));
            return Err(Error::new(Kind::Failed, text).hint("run `longshore down` again"));
        }
        stop.announce(&record, CAUSE)?;
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

/// The active runs; none, with a warning, if the cluster does not answer.
async fn in_progress(record: &Record) -> Vec<RunSummary> {
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
    let is_active = |run: &RunSummary| matches!(run.state, RunState::Pending | RunState::Running);
    found.into_iter().filter(is_active).collect()
}

async fn connect(record: &Record) -> Result<Cluster> {
    Ok(Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await?)
}

/// Asks whether to stop these runs. Returns their names.
fn agree(runs: &[RunSummary]) -> Result<BTreeSet<String>> {
    if runs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let count = ui::count(runs.len() as u64, "run");
    let verb = if runs.len() == 1 { "is" } else { "are" };
    let mut lines: Vec<String> = runs.iter().take(NAMED_RUNS).map(line).collect();
    if let Some(more) = runs.len().checked_sub(NAMED_RUNS).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    if !ui::is_interactive() {
        let text = format!("{count} {verb} in progress on the embedded cluster");
        return Err(Error::new(Kind::Failed, text)
            .details(lines)
            .hint("`longshore down --force` stops the cluster and these runs"));
    }
    ui::note(format!("{count} {verb} in progress:"));
    for line in lines {
        ui::note(format!("  {line}"));
    }
    ui::prompt("Stop the cluster and these runs? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let yes = ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    match read.is_ok() && yes {
        true => Ok(runs.iter().map(name).collect()),
        false => Err(Error::new(Kind::Interrupted, "the cluster was not stopped")),
    }
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
