//! `longshore cancel`: ends a run.

use std::process::ExitCode;

use clap::Args;
use longshore::{client::Cluster, launcher::runs};

use crate::{config, error::Result, follow, target::ClusterArgs, ui};

/// End a run; its record stays
///
/// Waits until no task of the run is left. A schedule is paused, and what runs of it
/// is ended.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  longshore cancel digits-x7k2p")]
pub(crate) struct CancelArgs {
    /// The run's name
    run: String,
    /// The namespace; the context's own without it
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
    let namespace = args
        .namespace
        .as_deref()
        .unwrap_or_else(|| cluster.default_namespace());
    let found = runs::find(cluster, namespace, &args.run).await?;
    if found.state.is_over() {
        ui::line(format!(
            "The run {} is over already: {}.",
            args.run,
            found.state.as_str()
        ));
        // One that was cancelled a moment ago may have tasks that still end.
        return follow::wait_until_still(cluster, &found.run).await;
    }
    follow::cancel(cluster, &found.run).await?;
    follow::wait_until_still(cluster, &found.run).await?;
    ui::line(match found.schedule {
        Some(_) => format!("The schedule {} makes no more runs.", args.run),
        None => format!("The run {} was cancelled.", args.run),
    });
    Ok(())
}
