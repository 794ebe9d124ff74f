//! `longshore resume`: continues paused schedules.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{RunState, RunSummary, runs},
};

use crate::{
    complete, config,
    error::{Error, Kind, Result},
    owners::{self, OwnerArgs},
    several_runs::{self, Wanted},
    target::{self, ClusterArgs},
    ui,
};

/// Continue schedules that were paused by `longshore cancel`
///
/// The schedule creates runs again. If a run was due while the schedule was paused, the cluster
/// creates one run at once. SCHEDULE is the name of a schedule, a prefix of it, or a quoted
/// pattern with * and ?. A run that was cancelled cannot be continued: start it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore resume nightly-x7k2p
  longshore resume 'nightly-*'")]
pub(crate) struct ResumeArgs {
    /// Schedules: names, prefixes, or patterns such as 'nightly-*'
    #[arg(value_name = "SCHEDULE", required = true, add = ArgValueCompleter::new(complete::runs))]
    schedules: Vec<String>,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn resume(args: ResumeArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = resume_all(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn resume_all(cluster: &Cluster, args: &ResumeArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let access = args.owners.act("resume");
    let all = runs::list(cluster, Some(namespace)).await?;
    let schedules = Wanted {
        is_wanted: |run| run.schedule.is_some(),
        none: "No schedule matches.",
    };
    let words = &args.schedules;
    let chosen =
        several_runs::choose_wanted(cluster, &all, namespace, words, access, schedules).await?;
    if let Some(run) = chosen.iter().find(|run| run.schedule.is_none()) {
        return Err(not_a_schedule(run));
    }
    owners::allow(cluster, &chosen, access).await?;
    several_runs::each(&chosen, |run| resume_one(cluster, run))
        .await
        .1
}

async fn resume_one(cluster: &Cluster, found: &RunSummary) -> Result<()> {
    let name = &found.run.name;
    if found.state != RunState::Paused {
        ui::line(format!("The schedule {name} is not paused."));
        return Ok(());
    }
    runs::resume(cluster, &found.run).await?;
    let now = runs::find(cluster, &found.run.namespace, name.as_str()).await?;
    let next = now.schedule.and_then(|schedule| schedule.next);
    let next = next.map_or_else(|| "never".to_owned(), |next| format!("at {next}"));
    ui::line(format!(
        "The schedule {name} creates runs again, next {next}."
    ));
    Ok(())
}

fn not_a_schedule(run: &RunSummary) -> Error {
    let name = &run.run.name;
    let error = Error::new(Kind::Usage, format!("the run {name} is not a schedule"));
    match &run.run.schedule {
        Some(schedule) => error.hint(format!(
            "`longshore resume {schedule}` continues its schedule"
        )),
        None if run.sweep.is_some() => error.hint(format!(
            "`longshore retry {name}` runs the combinations that did not succeed again"
        )),
        None => error.hint("a run that has ended cannot be continued: start it again"),
    }
}
