//! `longshore dev`: runs a folder of code, and restarts it with each change.

use std::{process::ExitCode, time::Duration};

use clap::{Arg, Args};
use longshore::launcher::{
    config::duration,
    dev::{DEFAULT_GRACE, DevSpec},
};

use super::run::{Develop, RunArgs, run_or_develop};
use crate::{
    error::{Error, Result},
    follow::OnInterrupt,
};

/// The arguments of `longshore dev`. Its help is that of the command's entry in `Command`.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Keep the run and its pods after Ctrl-C
    #[arg(long)]
    keep: bool,
    /// How long the command may take to end after SIGTERM before it is killed [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = grace)]
    grace: Option<Duration>,
}

/// Hides the options of `longshore run` that do not apply.
pub(crate) fn without_inapplicable(arg: Arg) -> Arg {
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
    let develop = Develop {
        spec: DevSpec {
            grace: args.grace.unwrap_or(DEFAULT_GRACE),
        },
        keep: args.keep || args.run.on_interrupt == OnInterrupt::Detach,
    };
    run_or_develop(args.run, Some(develop)).await
}
