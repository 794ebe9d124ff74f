//! `longshore rm`: removes runs with all their objects and files.

mod code;
mod leftovers;
mod outputs;

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{Owner, Ownership, RunSummary, runs},
};

use code::Code;
use outputs::RemovedOutputs;

use crate::{
    complete, config,
    error::{Error, Kind, Result},
    owners::{self, OwnerArgs},
    several_runs::{self, Failures},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Remove runs, with their Jobs, pods, logs, outputs and code
///
/// Code in a store is kept, because other runs may use it. The embedded cluster removes
/// code in its own data folder with the last run that uses it. See docs/stores.md.
///
/// RUN is the name of a run, a prefix of it that no other of your runs has, `last` for your
/// newest run, or a quoted pattern with * and ?. Active runs are refused unless --force is
/// given. If one of several names is invalid, nothing is removed. On a terminal, patterns
/// and --finished ask for confirmation before they remove several runs, unless --force is
/// given. With --finished, objects that interrupted submissions have left are removed, too.
/// Patterns and --finished select your runs. Runs of other users have to be named in full and
/// confirmed, or require --all-users.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore rm digits-x7k2p
  longshore rm last --force
  longshore rm 'sweep-*' --dry-run
  longshore rm --finished")]
pub(crate) struct RmArgs {
    /// Runs: names, prefixes, `last`, or patterns such as 'sweep-*'
    #[arg(value_name = "RUN", required_unless_present = "finished", add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    /// Remove all of your finished runs
    #[arg(long, conflicts_with = "runs")]
    finished: bool,
    /// Remove active runs, too, without confirmation
    #[arg(long, short = 'f')]
    force: bool,
    /// Print the runs that would be removed without removing them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn rm(args: RmArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = remove(&target, &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn remove(target: &Target, args: &RmArgs) -> Result<()> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let all = runs::list(cluster, Some(namespace)).await?;
    if let [name] = &args.runs[..]
        && let Some(left) = leftovers::of_run(cluster, namespace, &all, name).await?
    {
        return leftovers::remove(&left, args.dry_run).await;
    }
    let left = match args.finished {
        true => leftovers::old(cluster, namespace, &all, args.owners.all_users).await?,
        false => Vec::new(),
    };
    let chosen = choose(cluster, &all, namespace, args).await?;
    if chosen.is_empty() {
        match left.is_empty() {
            true => ui::note("No runs have finished."),
            false => leftovers::remove(&left, args.dry_run).await?,
        }
        return Ok(());
    }
    let is_active = |run: &&&RunSummary| match &run.schedule {
        Some(schedule) => schedule.active > 0,
        None => !run.state.is_over(),
    };
    if let (Some(run), false) = (chosen.iter().find(is_active), args.force) {
        let name = run.run.name.as_str();
        let message = format!(
            "the {} {name} is still active ({})",
            what(run),
            run.state.as_str()
        );
        let hint = format!("`longshore cancel {name}` stops it; --force removes it anyway");
        return Err(Error::new(Kind::Failed, message).hint(hint));
    }
    if args.dry_run {
        for run in chosen {
            ui::line(format!(
                "The {} {} would be removed.",
                what(run),
                run.run.name
            ));
        }
        return Ok(());
    }
    owners::allow(cluster, &chosen, args.owners.act("remove")).await?;
    let is_several =
        chosen.len() > 1 && (args.finished || args.runs.iter().any(|word| runs::is_pattern(word)));
    if is_several && !args.force && ui::is_interactive() && !confirm(&chosen).await {
        ui::note("Nothing was removed.");
        return Ok(());
    }
    remove_chosen(target, &all, chosen, args.force).await?;
    match left.is_empty() {
        true => Ok(()),
        false => leftovers::remove(&left, false).await,
    }
}

/// Removes runs with their outputs, objects and code, and reports the removals. The order ensures
/// that a run whose removal is interrupted is listed until everything else is removed.
pub(crate) async fn remove_chosen(
    target: &Target,
    all: &[RunSummary],
    chosen: Vec<&RunSummary>,
    force: bool,
) -> Result<()> {
    let cluster = target.cluster();
    let code = Code::of(target, &chosen).await;
    let mut freed: u64 = 0;
    let mut failures = Failures::of(chosen.len());
    for run in &chosen {
        let removed = remove_one(target, all, run, force).await;
        let bytes = failures.take(&run.run.name, removed);
        freed = freed.saturating_add(bytes.unwrap_or_default());
    }
    outputs::report(freed);
    code.release(cluster).await;
    failures.result()
}

/// Removes a run with its outputs and objects. Returns the freed bytes.
async fn remove_one(
    target: &Target,
    all: &[RunSummary],
    run: &RunSummary,
    force: bool,
) -> Result<u64> {
    let mut outputs = RemovedOutputs::of(target, all, &[run]).await;
    outputs.remove_elsewhere(target, force).await?;
    outputs.remove_local(target).await;
    runs::remove(target.cluster(), &run.run).await?;
    ui::line(format!("The {} {} was removed.", what(run), run.run.name));
    outputs.remove_local(target).await;
    Ok(outputs.freed())
}

fn what(run: &RunSummary) -> &'static str {
    match run.schedule {
        Some(_) => "schedule",
        None => "run",
    }
}

/// The selected runs without duplicates.
async fn choose<'a>(
    cluster: &Cluster,
    all: &'a [RunSummary],
    namespace: &str,
    args: &RmArgs,
) -> Result<Vec<&'a RunSummary>> {
    let access = args.owners.act("remove");
    if !args.finished {
        return several_runs::choose(cluster, all, namespace, &args.runs, access).await;
    }
    let finished = all.iter().filter(|run| run.state.is_over());
    if args.owners.all_users {
        return Ok(finished.collect());
    }
    let me = Owner::current(cluster).await?;
    let is_own = |run: &&RunSummary| me.ownership(run.owner.as_ref()) == Ownership::Own;
    let (own, others): (Vec<_>, Vec<_>) = finished.partition(is_own);
    owners::note_left(&others);
    Ok(own)
}

/// The maximum number of runs in the prompt.
const NAMED: usize = 20;

/// Asks for confirmation to remove these runs.
async fn confirm(chosen: &[&RunSummary]) -> bool {
    for run in chosen.iter().take(NAMED) {
        ui::note(format!("  {}  {}", run.run.name, run.state.as_str()));
    }
    if let Some(more @ 1..) = chosen.len().checked_sub(NAMED) {
        ui::note(format!("  and {more} more"));
    }
    ui::confirm(&format!("Remove these {} runs? [y/N] ", chosen.len())).await
}
