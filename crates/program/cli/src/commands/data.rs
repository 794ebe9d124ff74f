//! `longshore data`: lists and removes the data that the embedded cluster keeps for tasks.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use longshore::launcher::{
    data::{DataCache, DataError, KeptData, Removal},
    kept::{Uses, uses},
};
use serde_json::{Value, json};

use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format, TableFormat},
    target::{ClusterArgs, Target},
    ui,
};

/// List and remove the data of tasks that the embedded cluster keeps
///
/// Folders and buckets that runs use as data (`--data`, `[data]`) are kept in the cluster's
/// folder, each content once, for the next runs. Data of active runs is never removed. See
/// docs/inputs.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore data list
  longshore data list --output json
  longshore data prune --dry-run
  longshore data prune --all")]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the data, the least recently used first
    List {
        /// Output format
        #[arg(long, short, value_enum, default_value_t)]
        output: TableFormat,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Remove data by its sha256, or the start of it
    Rm {
        /// Start of the sha256
        #[arg(required = true)]
        sha256: Vec<String>,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Remove data that no run uses
    Prune {
        /// Also remove data of runs that have ended
        #[arg(long)]
        all: bool,
        /// Print what would be removed without removing it
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
}

pub(crate) async fn data(args: DataArgs) -> Result<ExitCode> {
    let cluster = match &args.action {
        Action::List { cluster, .. }
        | Action::Rm { cluster, .. }
        | Action::Prune { cluster, .. } => cluster,
    };
    let target = cluster.open(&config::here()?).await?;
    let result = act(&target, &args.action).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn act(target: &Target, action: &Action) -> Result<()> {
    let cache = target.data().ok_or_else(|| {
        Error::usage("only the embedded cluster keeps data").hint(
            "on other clusters, each pod fetches its data, and the data is removed with the pod",
        )
    })?;
    let read = || cache.kept().map_err(|error| failed(&error));
    if let Action::List { output, .. } = action {
        let uses = uses(target.cluster()).await?;
        return list(&cache, &read()?, &uses, *output);
    }
    // A run that is being submitted has the cache until its objects exist.
    let own = cache.clone();
    let alone = tokio::task::spawn_blocking(move || own.alone()).await;
    let alone = alone.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let alone = alone.map_err(|error| failed(&error))?;
    let uses = uses(target.cluster()).await?;
    let kept = read()?;
    let unwanted = match action {
        Action::Rm { sha256, .. } => {
            let chosen = sha256.iter().map(|start| choose(&kept, start));
            let chosen: Vec<KeptData> = chosen.collect::<Result<_>>()?;
            if let Some(used) = chosen.iter().find(|data| uses.is_needed(&data.sha256)) {
                let message = format!("active runs use the data {}", short(used));
                let hint = "`longshore runs` lists the runs; cancel them first";
                return Err(Error::new(Kind::Failed, message).hint(hint));
            }
            chosen
        }
        _ => unused(kept, &uses, action),
    };
    match (alone, action) {
        (_, Action::Prune { dry_run: true, .. }) => {
            for data in &unwanted {
                ui::line(format!("{} {}", short(data), ui::size(data.bytes)));
            }
            Ok(())
        }
        (Some(alone), _) => remove(alone, unwanted).await,
        (None, _) => {
            ui::note("The cluster keeps no data.");
            Ok(())
        }
    }
}

/// The data that no active run needs. Without `--all`, only data to which no run refers.
fn unused(mut kept: Vec<KeptData>, uses: &Uses, action: &Action) -> Vec<KeptData> {
    let all = matches!(action, Action::Prune { all: true, .. });
    kept.retain(|data| !uses.is_needed(&data.sha256) && (all || !uses.is_referred(&data.sha256)));
    kept
}

async fn remove(alone: Removal, data: Vec<KeptData>) -> Result<()> {
    let removed = tokio::task::spawn_blocking(move || alone.remove(&data)).await;
    let removed = removed.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let (removed, freed) = removed.map_err(|error| failed(&error))?;
    for data in &removed {
        ui::line(short(data));
    }
    ui::note(format!("Freed {} of data.", ui::size(freed)));
    Ok(())
}

fn choose(kept: &[KeptData], start: &str) -> Result<KeptData> {
    let mut found = kept.iter().filter(|data| data.sha256.starts_with(start));
    let hint = "`longshore data list` lists the data";
    match (found.next(), found.next()) {
        (Some(data), None) => Ok(data.clone()),
        (None, _) => {
            Err(Error::new(Kind::Failed, format!("there is no data {start:?}")).hint(hint))
        }
        _ => {
            let message = format!("several data begin with {start:?}: give more of the sha256");
            Err(Error::usage(message).hint(hint))
        }
    }
}

fn short(data: &KeptData) -> String {
    data.sha256.get(..12).unwrap_or_default().to_owned()
}

fn state(data: &KeptData, uses: &Uses) -> &'static str {
    match (uses.is_needed(&data.sha256), uses.is_referred(&data.sha256)) {
        (true, _) => "in use",
        (false, true) => "of ended runs",
        (false, false) => "unused",
    }
}

fn list(cache: &DataCache, kept: &[KeptData], uses: &Uses, format: TableFormat) -> Result<()> {
    let value = || {
        let data = kept.iter().map(|data| {
            json!({
                "sha256": data.sha256,
                "files": data.files,
                "bytes": data.bytes,
                "used": Timestamp::try_from(data.used).ok(),
                "state": state(data, uses),
                "path": cache.tree(&data.sha256),
            })
        });
        json!({"data": data.collect::<Vec<Value>>(), "bytes": cache.bytes()})
    };
    match format {
        TableFormat::Json => output::value(Format::Json, &value()),
        TableFormat::Yaml => output::value(Format::Yaml, &value()),
        TableFormat::Table => {
            let now = Timestamp::now();
            let rows = kept.iter().map(|data| {
                let used = Timestamp::try_from(data.used).unwrap_or(now);
                vec![
                    short(data),
                    data.files.to_string(),
                    ui::size(data.bytes),
                    format!("{} ago", ui::span(now.duration_since(used).as_secs())),
                    state(data, uses).to_owned(),
                ]
            });
            output::table(
                &["SHA256", "FILES", "SIZE", "USED", "STATE"],
                rows.collect(),
                "The cluster keeps no data.",
            );
            Ok(())
        }
    }
}

fn failed(error: &DataError) -> Error {
    Error::from_source(Kind::Failed, error)
}
