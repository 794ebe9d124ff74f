//! `longshore retry`: runs the failed combinations of a sweep again.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::launcher::{FollowOptions, names, preflight::Purpose, sweeps};

use super::run::{check, start};
use crate::{
    complete, config,
    error::{Error, Result},
    follow::{self, How, OnInterrupt},
    interrupt::Interrupt,
    last_event,
    output::EventFormat,
    owners::{self, OwnerArgs},
    show::{self, head},
    target::{self, ClusterArgs, Target},
    ui,
};

/// Run the failed combinations of a sweep again
///
/// Starts a new run of the combinations that failed or were cancelled, with the same code,
/// command and settings, and follows it to its end. `longshore sweep` shows the combinations
/// of all runs of the sweep in one table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore retry last
  longshore retry digits-x7k2p --detach")]
pub(crate) struct RetryArgs {
    /// Sweep: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Print the name of the new run and exit without following it
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
    /// Namespace [default: that of the context]
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
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let purpose = match args.detach {
        true => Purpose::Detach,
        false => Purpose::Follow,
    };
    let planning = async {
        let access = args.owners.act("retry");
        let found = owners::find_made(cluster, namespace, &args.run, access).await?;
        let plan = sweeps::retry(cluster, &found.run, &names::random_suffix()).await?;
        check(cluster, &plan, purpose).await?;
        Ok::<_, Error>(plan)
    };
    let plan = interrupt.unless(planning).await??;
    let run = start(cluster, &plan, &mut interrupt).await?;
    let tasks = run.roles.iter().map(|role| u64::from(role.count)).sum();
    let name = run.name.as_str();
    ui::note(format!(
        "{} {name}: {}",
        head("run"),
        ui::count(tasks, "combination")
    ));
    if args.detach {
        show::left_alone(&run, args.output, &target.facts());
        return Ok(ExitCode::SUCCESS);
    }
    let how = How {
        format: args.output,
        on_interrupt: args.on_interrupt,
        ..How::default()
    };
    let code = follow::to_the_end(target, &run, FollowOptions::default(), how, interrupt).await?;
    follow::shows_sweep(name);
    Ok(code)
}
