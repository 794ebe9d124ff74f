//! `longshore cancel`: stops a run.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{client::Cluster, launcher::runs};

use crate::{
    complete, config,
    error::Result,
    follow,
    target::{self, ClusterArgs},
    ui,
};

/// Stop a run and keep its record
///
/// Waits until no task of the run is left. A schedule is paused, and its active runs are
/// stopped. RUN is the name of a run, a prefix of it that no other run has, or `last` for
/// the newest run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore cancel digits-x7k2p
  longshore cancel last")]
pub(crate) struct CancelArgs {
    /// Run: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Namespace [default: that of the context]
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
    let found = runs::find(cluster, namespace, &args.run).await?;
    let name = &found.run.name;
    if found.state.is_over() {
        ui::line(format!(
            "The run {name} has already finished: {}.",
            found.state.as_str()
        ));
        // One that was cancelled a moment ago may have tasks that still end.
        return follow::wait_until_still(cluster, &found.run).await;
    }
    follow::cancel(cluster, &found.run).await?;
    follow::wait_until_still(cluster, &found.run).await?;
    ui::line(match found.schedule {
        Some(_) => format!("The schedule {name} creates no more runs."),
        None => format!("The run {name} was cancelled."),
    });
    Ok(())
}
