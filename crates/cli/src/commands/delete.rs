//! `longshore delete`: objects that are to go.

use std::{process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use longshore::client::{Cluster, DeleteOptions, Propagation};

use crate::{
    config,
    error::{Error, Result},
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// Delete objects, and wait until they are gone
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore delete job train
  longshore delete pods -l app=web
  longshore delete pods --all -n scratch
  longshore delete deployment web --cascade orphan")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Every object of the kind in the namespace
    #[arg(long)]
    all: bool,
    /// What becomes of the objects that they own
    #[arg(long, value_enum, default_value_t)]
    cascade: Cascade,
    /// Seconds to end in; 0 takes away at once
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u32>,
    /// Do not wait until they are gone
    #[arg(long)]
    no_wait: bool,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// No error when a name is not there
    #[arg(long)]
    ignore_not_found: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What becomes of owned objects.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Cascade {
    /// They go after their owner.
    #[default]
    Background,
    /// They go before their owner.
    Foreground,
    /// They stay.
    Orphan,
}

pub(crate) async fn delete(args: DeleteArgs) -> Result<ExitCode> {
    let selection = args.select.clone().check()?;
    if args.all == selection.is_narrow() {
        return Err(Error::usage(if args.all {
            "--all means every object: leave names and selectors out"
        } else {
            "which objects? name some, give a selector, or say --all"
        }));
    }
    let target = args.cluster.open(&config::here()?).await?;
    let result = delete_all(target.cluster(), &args, &selection).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn delete_all(cluster: &Cluster, args: &DeleteArgs, selection: &Selection) -> Result<()> {
    let view = selection.view(cluster).await?;
    let items = if args.ignore_not_found && !selection.names.is_empty() {
        let mut items = Vec::new();
        for name in &selection.names {
            items.extend(view.find(name).await?);
        }
        items
    } else {
        selection.items(&view).await?
    };
    if items.is_empty() {
        ui::note(select::nothing(&view));
        return Ok(());
    }
    let options = DeleteOptions {
        propagation: Some(match args.cascade {
            Cascade::Background => Propagation::Background,
            Cascade::Foreground => Propagation::Foreground,
            Cascade::Orphan => Propagation::Orphan,
        }),
        grace_seconds: args.grace_period,
        ..DeleteOptions::default()
    };
    for item in &items {
        item.delete(&options).await?;
        ui::line(format!("{} deleted", select::named(item)));
    }
    if !args.no_wait {
        for item in &items {
            item.wait_gone(Duration::from_secs(args.timeout)).await?;
        }
    }
    Ok(())
}
