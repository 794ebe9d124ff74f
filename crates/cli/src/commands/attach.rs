//! `longshore attach`: to a run again, or to the program of a container.

use std::process::ExitCode;

use clap::Args;
use longshore::launcher::{
    FollowOptions, Run,
    runs::{self, RunsError},
};

use super::exec::{self, ContainerArgs};
use crate::{
    config,
    error::Result,
    follow::{self, OnInterrupt, Telling},
    target::Target,
    ui,
};

/// Follow a run again, or take the input and output of a container's program
///
/// A name is a run's, or, if there is no such run, a pod's. A run is followed to its
/// end, from anywhere, as by the command that began it, with the same exit code.
///
/// A container has input when its spec says `stdin: true`. Ctrl-C ends the
/// connection, not the program, unless there is a terminal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore attach digits-x7k2p
  longshore attach digits-x7k2p --tail 10 --output json
  longshore attach web
  longshore attach shell -it")]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    container: ContainerArgs,
    /// Only so many lines from the end of each task's log
    #[arg(long, value_name = "N", help_heading = "Of a run")]
    tail: Option<u64>,
    /// How to tell what happens
    #[arg(long, short, value_enum, default_value_t, help_heading = "Of a run")]
    output: Telling,
    /// What Ctrl-C does to the run; without a terminal `ask` leaves it alone
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHAT",
        help_heading = "Of a run"
    )]
    on_interrupt: OnInterrupt,
}

pub(crate) async fn attach(args: AttachArgs) -> Result<ExitCode> {
    let target = args.container.cluster.open(&config::here()?).await?;
    let cluster = target.cluster();
    let namespace = args.container.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    // Input and terminals are a container's.
    let found = match args.container.is_surely_a_pod() {
        true => None,
        false => match runs::find_made(cluster, namespace, &args.container.pod).await {
            Err(RunsError::NoSuchRun { .. }) => None,
            found => Some(found?.run),
        },
    };
    match found {
        Some(run) => again(target, &run, &args).await,
        None => exec::session(target, args.container, None).await,
    }
}

async fn again(target: Target, run: &Run, args: &AttachArgs) -> Result<ExitCode> {
    let interrupt = follow::Interrupt::listen()?;
    let options = FollowOptions {
        tail: args.tail,
        ..FollowOptions::default()
    };
    let on_interrupt = match args.on_interrupt {
        OnInterrupt::Ask if !ui::is_interactive() => OnInterrupt::Detach,
        chosen => chosen,
    };
    let how = (args.output, on_interrupt);
    let result = follow::to_the_end(&target, run, options, how, interrupt).await;
    let closed = target.close().await;
    let code = result?;
    closed.map(|()| code)
}
