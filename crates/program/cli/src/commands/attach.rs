//! `longshore attach`: follows a run again, or connects to a container's program.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        FollowOptions, RunSummary,
        runs::{self, RunsError},
    },
};

use super::exec::{self, ContainerArgs};
use crate::{
    config,
    error::Result,
    follow::{self, How, OnInterrupt},
    interrupt::Interrupt,
    last_event,
    output::EventFormat,
    owners::{self, Access},
    place::{self, Container, Place},
    target::{self, Target},
    ui,
};

/// Follow a run again, or attach to the program of a container
///
/// A run is followed to its end, as by the command that started it, with the same exit
/// code. RUN is the name of a run, a prefix of it that no other of your runs has, or `last` for
/// the newest run.
///
/// A task (RUN/ROLE/INDEX) or a pod connects stdin and the output to the container's
/// program. It takes stdin if its spec says `stdin: true`. Ctrl-C ends the connection,
/// not the program, unless a terminal is allocated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore attach last
  longshore attach digits-x7k2p --tail 10 --output json
  longshore attach digits-x7k2p/worker/0
  longshore attach pod/shell -it")]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    container: ContainerArgs,
    /// Lines of each task's log to begin with [default: all]
    #[arg(long, value_name = "N", help_heading = "Runs")]
    tail: Option<u64>,
    /// Output format
    #[arg(
        long,
        short,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Runs"
    )]
    output: EventFormat,
    /// Effect of Ctrl-C on the run; without a terminal, and on a run of another user, `ask` leaves
    /// it alone
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "ACTION",
        help_heading = "Runs"
    )]
    on_interrupt: OnInterrupt,
}

pub(crate) async fn attach(args: AttachArgs) -> Result<ExitCode> {
    let target = args.container.cluster.open(&config::here()?).await?;
    if args.container.needs_a_container() {
        return exec::session(target, args.container, None).await;
    }
    let cluster = target.cluster();
    let namespace = target::namespace(args.container.namespace.as_deref(), cluster);
    let found = place::find(cluster, namespace, &args.container.place, Access::Read).await;
    let container = match found {
        Ok(Place::Run(run)) => {
            let result = again(target, &run, &args).await;
            last_event::after_attach(args.output, result.as_ref().err());
            return result;
        }
        Ok(place) => Container::of(cluster, place, None).await,
        Err(error) => {
            last_event::after_attach(args.output, Some(&error));
            Err(error)
        }
    };
    exec::enter(target, args.container, container, None).await
}

async fn again(target: Target, found: &RunSummary, args: &AttachArgs) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let on_interrupt = match on_interrupt(target.cluster(), found, args).await {
        Ok(action) => action,
        Err(error) => {
            target.close().await?;
            return Err(error);
        }
    };
    let options = FollowOptions {
        tail: args.tail,
        ..FollowOptions::default()
    };
    let how = How {
        format: args.output,
        on_interrupt,
        ..How::default()
    };
    let result = follow::to_the_end(&target, &found.run, options, how, interrupt).await;
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}

/// The effect of Ctrl-C. By default, it does not stop a run of another user.
async fn on_interrupt(
    cluster: &Cluster,
    found: &RunSummary,
    args: &AttachArgs,
) -> Result<OnInterrupt> {
    match args.on_interrupt {
        OnInterrupt::Detach => Ok(OnInterrupt::Detach),
        OnInterrupt::Ask if !ui::is_interactive() => Ok(OnInterrupt::Detach),
        OnInterrupt::Ask if args.container.owners.all_users => Ok(OnInterrupt::Ask),
        OnInterrupt::Ask => {
            match runs::check_own(cluster, &found.run, found.owner.as_ref()).await {
                Ok(()) => Ok(OnInterrupt::Ask),
                Err(RunsError::NotOwn { .. }) => Ok(OnInterrupt::Detach),
                Err(error) => Err(error.into()),
            }
        }
        OnInterrupt::Cancel => {
            let access = args.container.owners.act("cancel");
            owners::allow(cluster, &[found], access).await?;
            Ok(OnInterrupt::Cancel)
        }
    }
}
