//! `longshore tag`: sets, removes and prints the tags of a run.

use std::{collections::BTreeMap, process::ExitCode};

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
    error::{Error, Result},
    output::TextFormat,
    owners::{self, Access, OwnerArgs},
    several_runs,
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
  longshore tag 'sweep-*' dataset=v2
  longshore tag last --output json")]
pub(crate) struct TagArgs {
    /// Run: its name, a prefix of it, `last`, or a pattern; several are separated by commas
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Changes: KEY=VALUE, KEY, or KEY- to remove a tag
    #[arg(value_name = "CHANGE", value_parser = parse_tag_change)]
    changes: Vec<TagChange>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
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
    let access = match args.changes.is_empty() {
        true => Access::Read,
        false => args.owners.act("tag"),
    };
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = [args.run.clone()];
    let chosen = several_runs::choose(cluster, &all, namespace, &words, access).await?;
    owners::allow(cluster, &chosen, access).await?;
    let tagged = several_runs::each(&chosen, |found| async {
        if !args.changes.is_empty() {
            runs::set_tags(cluster, &found.run, &args.changes).await?;
        }
        let mut tags = found.tags.clone();
        apply(&args.changes, &mut tags);
        Ok::<_, Error>((found.run.name.to_string(), tags))
    });
    let (tagged, result) = tagged.await;
    print(
        &tagged.into_iter().collect(),
        several_runs::are_several(&words),
        args,
    )?;
    result
}

fn apply(changes: &[TagChange], tags: &mut BTreeMap<String, String>) {
    for (key, value) in changes {
        match value {
            Some(value) => tags.insert(key.clone(), value.clone()),
            None => tags.remove(key),
        };
    }
}

/// Prints the tags of a run, or the tags of several by their names.
fn print(
    tagged: &BTreeMap<String, BTreeMap<String, String>>,
    are_several: bool,
    args: &TagArgs,
) -> Result<()> {
    if are_several {
        return args.output.print(tagged, || {
            for (name, tags) in tagged {
                ui::line(format!("{name}: {}", lines(tags).join(" ")));
            }
        });
    }
    for (name, tags) in tagged {
        args.output.print(tags, || {
            if tags.is_empty() {
                ui::note(format!("The run {name} has no tags."));
            }
            lines(tags).iter().for_each(ui::line);
        })?;
    }
    Ok(())
}

/// `KEY=VALUE`, or `KEY` for a tag without a value.
fn lines(tags: &BTreeMap<String, String>) -> Vec<String> {
    let line = |(key, value): (&String, &String)| match value.is_empty() {
        true => key.clone(),
        false => format!("{key}={value}"),
    };
    tags.iter().map(line).collect()
}
