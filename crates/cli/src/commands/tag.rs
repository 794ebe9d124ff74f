//! `longshore tag`: sets, removes and prints the tags of a run.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{
        runs,
        tag::{TagChange, parse_tag_change},
    },
};

use crate::{
    complete, config,
    error::Result,
    output::TextFormat,
    target::{self, ClusterArgs},
    ui,
};

/// Set, remove or print the tags of a run
///
/// KEY=VALUE sets a tag, KEY sets a tag without a value, and KEY- removes a tag. Without
/// changes, prints the tags. Tags are labels of the run's Jobs with the prefix
/// tag.longshore.dev/, also after the run has ended; `longshore runs --tag` selects by them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore tag last best dataset=v2
  longshore tag digits-x7k2p best-
  longshore tag last --output json")]
pub(crate) struct TagArgs {
    /// Run: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Changes: KEY=VALUE, KEY, or KEY- to remove a tag
    #[arg(value_name = "CHANGE", value_parser = parse_tag_change)]
    changes: Vec<TagChange>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    /// Namespace [default: that of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn tag(args: TagArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = change(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn change(cluster: &Cluster, args: &TagArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let found = runs::find(cluster, namespace, &args.run).await?;
    let mut tags = found.tags;
    if !args.changes.is_empty() {
        runs::set_tags(cluster, &found.run, &args.changes).await?;
        for (key, value) in &args.changes {
            match value {
                Some(value) => tags.insert(key.clone(), value.clone()),
                None => tags.remove(key),
            };
        }
    }
    args.output.print(&tags, || {
        if tags.is_empty() {
            ui::note(format!("The run {} has no tags.", found.run.name));
        }
        for (key, value) in &tags {
            ui::line(match value.is_empty() {
                true => key.clone(),
                false => format!("{key}={value}"),
            });
        }
    })
}
