//! `longshore retry`: runs the failed combinations of sweeps again.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{
    FollowOptions, Run, RunState, RunSummary, names,
    plan::Plan,
    preflight::Purpose,
    runs,
    sweeps::{self, SweepError},
};

use super::run::{check, start};
use crate::{
    complete, config,
    error::{Error, Result},
    follow::{self, How, OnInterrupt},
    interrupt::Interrupt,
    last_event,
    output::EventFormat,
    owners::{self, OwnerArgs},
    several_runs::{self, Failures, Wanted},
    show::{self, head},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Run the failed combinations of sweeps again
///
/// Starts a new run of the combinations that failed or were cancelled, with the same code,
/// command and settings, and follows it to its end. `longshore sweep` shows the combinations
/// of all runs of the sweep in one table. Several sweeps require --detach; patterns select those
/// that have failed or were cancelled. If one of several names is invalid, nothing is started.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore retry last
  longshore retry digits-x7k2p --detach
  longshore retry 'digits-*' --detach")]
pub(crate) struct RetryArgs {
    /// Sweeps: names, prefixes, `last`, or patterns such as 'digits-*'
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    /// Print the names of the new runs and exit without following them
    #[arg(long, short = 'd', visible_alias = "no-follow")]
    detach: bool,
    /// Effect of Ctrl-C on the run; without a terminal, `ask` cancels it
    #[arg(long, value_enum, default_value_t, value_name = "ACTION")]
    on_interrupt: OnInterrupt,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: EventFormat,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn retry(args: RetryArgs) -> Result<ExitCode> {
    let result = open_and_launch(&args).await;
    last_event::after_launch(args.output, result.as_ref().err());
    result
}

async fn open_and_launch(args: &RetryArgs) -> Result<ExitCode> {
    let mut interrupt = Interrupt::listen()?;
    let configured = config::here()?;
    let opening = args.cluster.open(&configured);
    let target = interrupt.unless(opening).await??;
    let result = launch(&target, args, interrupt).await;
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

async fn launch(target: &Target, args: &RetryArgs, mut interrupt: Interrupt) -> Result<ExitCode> {
    let chosen = interrupt.unless(choose(target, args)).await??;
    if args.detach {
        let mut failures = Failures::of(chosen.len());
        for found in &chosen {
            let plan = plan(target, found, &mut interrupt).await?;
            if let Err(error @ SweepError::NothingToRetry { .. }) = &plan
                && several_runs::are_several(&args.runs)
            {
                // Reports that a retry of this sweep has succeeded.
                ui::note(error.to_string());
                continue;
            }
            let started = start_plan(target, plan, Purpose::Detach, &mut interrupt).await;
            if let Some(run) = failures.take(&found.run.name, started) {
                show::left_alone(&run, args.output, &target.facts());
            }
        }
        return failures.result().map(|()| ExitCode::SUCCESS);
    }
    let found = match &chosen[..] {
        [] => return Ok(ExitCode::SUCCESS),
        [found] => found,
        several => {
            let message = format!("{} sweeps cannot be followed at once", several.len());
            return Err(Error::usage(message).hint("add --detach to start all of them"));
        }
    };
    let plan = plan(target, found, &mut interrupt).await?;
    let run = start_plan(target, plan, Purpose::Follow, &mut interrupt).await?;
    let how = How {
        format: args.output,
        on_interrupt: args.on_interrupt,
        ..How::default()
    };
    let code = follow::to_the_end(target, &run, FollowOptions::default(), how, interrupt).await?;
    follow::shows_sweep(run.name.as_str());
    Ok(code)
}

/// The chosen sweeps, each once: a sweep and its retries are retried together.
async fn choose(target: &Target, args: &RetryArgs) -> Result<Vec<RunSummary>> {
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let access = args.owners.act("retry");
    let all = runs::list(cluster, Some(namespace)).await?;
    let failed = Wanted {
        is_wanted: |run| {
            let has_failed = matches!(run.state, RunState::Failed | RunState::Cancelled);
            has_failed && run.sweep.is_some()
        },
        none: "No sweep that matches has failed or was cancelled.",
    };
    let words = &args.runs;
    let chosen =
        several_runs::choose_wanted(cluster, &all, namespace, words, access, failed).await?;
    owners::allow(cluster, &chosen, access).await?;
    let mut sweeps: Vec<&RunSummary> = Vec::new();
    for run in chosen {
        let run = runs::made(&all, run)?;
        let is_known = |known: &&RunSummary| match &run.sweep {
            Some(sweep) => known.sweep.as_ref() == Some(sweep),
            None => known.run.name == run.run.name,
        };
        if !sweeps.iter().any(is_known) {
            sweeps.push(run);
        }
    }
    Ok(sweeps.into_iter().cloned().collect())
}

/// Plans a run of the combinations of a sweep that have not succeeded.
async fn plan(
    target: &Target,
    found: &RunSummary,
    interrupt: &mut Interrupt,
) -> Result<Result<Plan, SweepError>> {
    let suffix = names::random_suffix();
    let planning = sweeps::retry(target.cluster(), &found.run, &suffix);
    interrupt.unless(planning).await
}

/// Checks and starts the planned run.
async fn start_plan(
    target: &Target,
    plan: Result<Plan, SweepError>,
    purpose: Purpose,
    interrupt: &mut Interrupt,
) -> Result<Run> {
    let cluster = target.cluster();
    let plan = plan?;
    interrupt.unless(check(cluster, &plan, purpose)).await??;
    let run = start(cluster, &plan, interrupt).await?;
    let tasks = run.roles.iter().map(|role| u64::from(role.count)).sum();
    ui::note(format!(
        "{} {}: {}",
        head("run"),
        run.name,
        ui::count(tasks, "combination")
    ));
    Ok(run)
}
