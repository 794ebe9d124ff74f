//! `longshore cancel`: stops runs.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{
        RunSummary,
        runs::{self, RunState},
    },
};

use crate::{
    complete, config,
    error::Result,
    follow, hints,
    owners::{self, OwnerArgs},
    several_runs::{self, Wanted},
    target::{self, ClusterArgs},
    ui,
};

/// Stop runs and keep their records
///
/// Waits until no task of the runs is left. A schedule is paused, and its active runs are
/// stopped; `longshore resume` continues it. RUN is the name of a run, a prefix of it that no
/// other of your runs has, `last` for your newest run, or a quoted pattern with * and ?. A
/// pattern selects your active runs. If one of several names is invalid, no run is stopped.
/// Runs of other users have to be named in full and confirmed, or require --all-users.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore cancel digits-x7k2p
  longshore cancel last
  longshore cancel digits-x7k2p 'digits-*'")]
pub(crate) struct CancelArgs {
    /// Runs: names, prefixes, `last`, or patterns such as 'sweep-*'
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn cancel(args: CancelArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = end(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn end(cluster: &Cluster, args: &CancelArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let access = args.owners.act("cancel");
    let all = runs::list(cluster, Some(namespace)).await?;
    let active = Wanted {
        is_wanted: |run| !run.state.is_over(),
        none: "No run that matches is active.",
    };
    let words = &args.runs;
    let chosen =
        several_runs::choose_wanted(cluster, &all, namespace, words, access, active).await?;
    owners::allow(cluster, &chosen, access).await?;
    several_runs::each(&chosen, |run| end_one(cluster, run))
        .await
        .1
}

async fn end_one(cluster: &Cluster, found: &RunSummary) -> Result<()> {
    let name = &found.run.name;
    if found.state.is_over() {
        ui::line(format!(
            "The run {name} has already finished: {}.",
            found.state.as_str()
        ));
        if found.state != RunState::Cancelled {
            // The run may have pods with containers that do not end.
            follow::cancel(cluster, &found.run).await?;
        }
        // A run that was cancelled a moment ago may have tasks that have not ended yet.
        return follow::wait_until_still(cluster, &found.run).await;
    }
    follow::cancel(cluster, &found.run).await?;
    follow::wait_until_still(cluster, &found.run).await?;
    match found.schedule {
        Some(_) => {
            ui::line(format!("The schedule {name} creates no more runs."));
            let resume = format!("`longshore resume {name}` continues it");
            ui::note(hints::complete(&resume));
        }
        None => ui::line(format!("The run {name} was cancelled.")),
    }
    Ok(())
}
