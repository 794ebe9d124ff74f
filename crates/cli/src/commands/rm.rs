//! `longshore rm`: runs, with all that is theirs.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{RunSummary, runs},
};

use crate::{
    config,
    error::{Error, Kind, Result},
    target::ClusterArgs,
    ui,
};

/// Remove runs, with their Jobs, pods, logs and code
///
/// A run that goes on is refused: cancel it first, or use --force. What is not given
/// a name is not touched, and nothing is removed when one of the names is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore rm digits-x7k2p
  longshore rm digits-x7k2p digits-b2k9w --force
  longshore rm --finished")]
pub(crate) struct RmArgs {
    /// The runs' names
    #[arg(value_name = "RUN", required_unless_present = "finished")]
    runs: Vec<String>,
    /// All runs that are over
    #[arg(long, conflicts_with = "runs")]
    finished: bool,
    /// Those that go on, too: their tasks end
    #[arg(long, short = 'f', conflicts_with = "finished")]
    force: bool,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn rm(args: RmArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = remove(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn remove(cluster: &Cluster, args: &RmArgs) -> Result<()> {
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    let mut chosen: Vec<RunSummary> = Vec::new();
    if args.finished {
        let all = runs::list(cluster, Some(namespace)).await?;
        chosen.extend(all.into_iter().filter(|run| run.state.is_over()));
    }
    for name in &args.runs {
        chosen.push(runs::find(cluster, namespace, name).await?);
    }
    let goes_on = chosen.iter().find(|run| match &run.schedule {
        Some(schedule) => schedule.active > 0,
        None => !run.state.is_over(),
    });
    if let (Some(run), false) = (goes_on, args.force) {
        let name = run.run.name.as_str();
        let message = format!("the run {name} still goes on ({})", run.state.as_str());
        let hint = format!("`longshore cancel {name}` ends it; --force removes it as it is");
        return Err(Error::new(Kind::Failed, message).hint(hint));
    }
    for run in &chosen {
        runs::remove(cluster, &run.run).await?;
        let what = if run.schedule.is_some() {
            "schedule"
        } else {
            "run"
        };
        ui::line(format!("The {what} {} was removed.", run.run.name.as_str()));
    }
    if chosen.is_empty() {
        ui::note("No run is over.");
    }
    Ok(())
}
