//! `longshore delete`: deletes objects.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    Item,
    client::{Cluster, DeleteOptions, Propagation, kinds::Any},
};
use serde_json::Value;

use super::apply;
use crate::{
    complete, config,
    error::{Error, Result},
    select::{self, Selection, WhichArgs},
    target::{self, ClusterArgs},
    ui,
};

/// Delete objects and wait until they no longer exist
///
/// Selects objects by kind and name, by kind and selector, or from manifests.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore delete job train
  longshore delete -f job.yaml
  longshore delete pods -l app=web
  longshore delete pods --all -n scratch
  longshore delete deployment web --cascade orphan")]
pub(crate) struct DeleteArgs {
    /// Kind, as in pods, po or jobs.batch; or KIND/NAME
    #[arg(required_unless_present = "files", add = ArgValueCompleter::new(complete::kinds))]
    kind: Option<String>,
    #[command(flatten)]
    which: WhichArgs,
    /// Delete the objects of these manifests, YAML or JSON; - is stdin
    #[arg(long = "filename", short = 'f', id = "files", value_name = "FILE",
        conflicts_with_all = ["kind", "names", "selector", "field_selector", "all", "all_namespaces"])]
    files: Vec<PathBuf>,
    /// Delete all objects of the kind in the namespace
    #[arg(long)]
    all: bool,
    /// Deletion of dependent objects
    #[arg(long, value_enum, default_value_t)]
    cascade: Cascade,
    /// Grace period in seconds; 0 deletes immediately
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u32>,
    /// Return without waiting for the deletion to complete
    #[arg(long)]
    no_wait: bool,
    /// Seconds to wait for each object
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Do not fail if an object does not exist
    #[arg(long)]
    ignore_not_found: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What happens to dependent objects.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Cascade {
    /// Delete them after their owner.
    #[default]
    Background,
    /// Delete them before their owner.
    Foreground,
    /// Keep them.
    Orphan,
}

/// The objects to delete.
enum Chosen {
    /// Objects of one kind.
    Selection(Selection),
    /// The objects of manifests.
    Manifests(Vec<Value>),
}

pub(crate) async fn delete(args: DeleteArgs) -> Result<ExitCode> {
    let chosen = choose(&args)?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = delete_all(target.cluster(), &args, chosen).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

fn choose(args: &DeleteArgs) -> Result<Chosen> {
    let Some(kind) = &args.kind else {
        let objects = apply::read_all(&args.files)?;
        return Ok(Chosen::Manifests(objects));
    };
    let selection = args.which.clone().check(kind.clone())?;
    if args.all == selection.is_narrow() {
        return Err(Error::usage(if args.all {
            "--all deletes every object of the kind: leave out names and selectors"
        } else {
            "no objects are selected: specify names, a selector, or --all"
        }));
    }
    Ok(Chosen::Selection(selection))
}

async fn delete_all(cluster: &Cluster, args: &DeleteArgs, chosen: Chosen) -> Result<()> {
    let items = match chosen {
        Chosen::Selection(selection) => selected(cluster, args, &selection).await?,
        Chosen::Manifests(objects) => of_manifests(cluster, args, &objects).await?,
    };
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

async fn selected(
    cluster: &Cluster,
    args: &DeleteArgs,
    selection: &Selection,
) -> Result<Vec<Item<Any>>> {
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
    }
    Ok(items)
}

/// Finds the objects of manifests in the cluster. Fails before any is deleted if an object does not
/// exist.
async fn of_manifests(
    cluster: &Cluster,
    args: &DeleteArgs,
    objects: &[Value],
) -> Result<Vec<Item<Any>>> {
    let namespace = target::namespace(args.which.namespace.as_deref(), cluster);
    let mut items = Vec::new();
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let view = cluster.place(object, namespace).await;
        let view = view.map_err(|error| select::unknown_kind_of(error, object))?;
        match args.ignore_not_found {
            true => items.extend(view.find(name).await?),
            false => items.push(view.fetch(name).await?),
        }
    }
    Ok(items)
}
