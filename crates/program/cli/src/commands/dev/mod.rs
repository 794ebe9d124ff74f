//! `longshore dev`: runs a folder of code, and restarts it with each change.

mod attach;

use std::{process::ExitCode, time::Duration};

use clap::{Arg, Args};
use longshore::launcher::{config::duration, dev::DEFAULT_GRACE};

use clap_complete::engine::ArgValueCompleter;

use super::run::{Develop, RunArgs, run_or_develop};
use crate::{
    complete,
    error::{Error, Result},
    follow::OnInterrupt,
    last_event,
    owners::OwnerArgs,
};

/// The arguments of `longshore dev`. Its help is that of the command's entry in `Command`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Attach to a run that `longshore dev` has started: its name, a prefix of it that no other
    /// run has, or `last`
    #[arg(
        long = "run",
        value_name = "RUN",
        help_heading = "Attach",
        add = ArgValueCompleter::new(complete::runs)
    )]
    existing: Option<String>,
    #[command(flatten, next_help_heading = "Attach")]
    owners: OwnerArgs,
    /// Restart the command also if no file has changed
    #[arg(long, help_heading = "Attach")]
    restart_now: bool,
    /// Lines of each task's log to begin with [default: 10]
    #[arg(long, value_name = "N", help_heading = "Attach")]
    tail: Option<u64>,
    /// Keep the run and its pods after Ctrl-C
    #[arg(long)]
    keep: bool,
    /// How long the command may take to end after SIGTERM before it is killed [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = grace)]
    grace: Option<Duration>,
}

/// The name of [`DevArgs::existing`].
const EXISTING: &str = "existing";
const DEFAULT_TAIL: u64 = 10;

/// Hides the options of `longshore run` that do not apply. Options of a new run are refused
/// together with the option for an existing run.
pub(crate) fn adapted(arg: Arg) -> Arg {
    const APPLICABLE_TO_EXISTING: [&str; 16] = [
        EXISTING,
        "all_users",
        "restart_now",
        "tail",
        "keep",
        "dir",
        "namespace",
        "ignore",
        "allow_secrets",
        "forward",
        "output",
        "context",
        "kubeconfig",
        "embedded",
        "data_dir",
        // The environment sets it, too; it does not apply to either.
        "on_interrupt",
    ];
    let arg = without_inapplicable(arg);
    match APPLICABLE_TO_EXISTING.contains(&arg.get_id().as_str()) {
        true => arg,
        false => arg.conflicts_with(EXISTING),
    }
}

fn without_inapplicable(arg: Arg) -> Arg {
    const INAPPLICABLE: [&str; 13] = [
        "stdin",
        "tty",
        "detach",
        "cron",
        "time_zone",
        "sweep",
        "sweep_file",
        "samples",
        "sweep_seed",
        "parallel",
        "max_failed",
        "metrics",
        "on_interrupt",
    ];
    match INAPPLICABLE.contains(&arg.get_id().as_str()) {
        true => arg.hide(true),
        false => arg,
    }
}

/// The longest grace period.
const LONGEST_GRACE: Duration = Duration::from_secs(3600);

fn grace(text: &str) -> Result<Duration, String> {
    let grace = duration("--grace", text).map_err(|error| error.to_string())?;
    match grace <= LONGEST_GRACE {
        true => Ok(grace),
        false => Err("it is longer than 1h".to_owned()),
    }
}

pub(crate) async fn dev(args: DevArgs) -> Result<ExitCode> {
    if args.run.stdin {
        return Err(Error::usage(
            "stdin is not sent to tasks that restart: leave out -i and -t; `longshore shell` opens a terminal in a task",
        ));
    }
    if args.run.detach {
        return Err(Error::usage(
            "changes are sent while this command runs: leave out --detach",
        ));
    }
    let keep = args.keep || args.run.on_interrupt == OnInterrupt::Detach;
    if let Some(name) = args.existing {
        let how = attach::How {
            keep,
            restarts: args.restart_now,
            tail: args.tail.unwrap_or(DEFAULT_TAIL),
            owners: args.owners,
        };
        let format = args.run.output;
        let result = attach::attach(args.run, &name, how).await;
        last_event::after_attach(format, result.as_ref().err());
        return result;
    }
    // Checked here, because clap's `requires` does not apply to an argument that conflicts with
    // others.
    if args.restart_now || args.tail.is_some() || args.owners.all_users {
        let option = match (args.restart_now, args.owners.all_users) {
            (true, _) => "--restart-now",
            (_, true) => "--all-users",
            _ => "--tail",
        };
        return Err(Error::usage(format!(
            "{option} is for an existing run: add --run RUN, or leave it out"
        )));
    }
    let develop = Develop {
        grace: args.grace.unwrap_or(DEFAULT_GRACE),
        keep,
    };
    let format = args.run.output;
    let result = run_or_develop(args.run, Some(develop)).await;
    last_event::after_launch(format, result.as_ref().err());
    result
}
