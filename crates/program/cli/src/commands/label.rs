//! `longshore label`: sets and removes labels.

use std::process::ExitCode;

use clap::Args;
use longshore::client::{Cluster, Patch};
use serde_json::{Map, Value, json};

use crate::{
    config,
    error::{Error, Result},
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// Set or remove labels of objects
///
/// KEY=VALUE sets a label, KEY- removes it; they follow the names.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore label pod web tier=front
  longshore label pods -l app=web canary=yes tier-
  longshore label node this example.com/fast= --overwrite")]
pub(crate) struct LabelArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Replace existing values
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn label(mut args: LabelArgs) -> Result<ExitCode> {
    // Names do not contain an equals sign or end with a dash.
    let is_change = |word: &str| word.contains('=') || word.ends_with('-');
    let changes = args.select.take(is_change);
    if changes.is_empty() {
        return Err(Error::usage(
            "no label changes: KEY=VALUE sets a label, KEY- removes it",
        ));
    }
    let selection = args.select.check()?;
    let changes = changes
        .iter()
        .map(|change| parse(change))
        .collect::<Result<Vec<_>>>()?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = change(target.cluster(), &selection, &changes, args.overwrite).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

/// A label and its value; `None` removes it.
fn parse(change: &str) -> Result<(String, Option<String>)> {
    use longshore::model::name::{label_key, label_value};
    let wrong = |error: longshore::model::name::NameError| Error::usage(error.to_string());
    if let Some((key, value)) = change.split_once('=') {
        label_key(key).map_err(wrong)?;
        label_value(value).map_err(wrong)?;
        return Ok((key.to_owned(), Some(value.to_owned())));
    }
    let key = change.strip_suffix('-').unwrap_or(change);
    label_key(key).map_err(wrong)?;
    Ok((key.to_owned(), None))
}

async fn change(
    cluster: &Cluster,
    selection: &Selection,
    changes: &[(String, Option<String>)],
    overwrite: bool,
) -> Result<()> {
    let view = selection.view(cluster).await?;
    let items = selection.items(&view).await?;
    if items.is_empty() {
        ui::note(select::nothing(&view));
        return Ok(());
    }
    // Check all objects before changing any.
    for item in items.iter().filter(|_| !overwrite) {
        for (key, value) in changes {
            let there = item.meta().labels.get(key);
            if let (Some(there), Some(value)) = (there, value)
                && there != value
            {
                let named = select::named(item);
                return Err(Error::usage(format!("{named} has {key}={there} already"))
                    .hint("--overwrite replaces it"));
            }
        }
    }
    let labels: Map<String, Value> = changes
        .iter()
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect();
    let patch = Patch::merge(json!({"metadata": {"labels": labels}}));
    for item in items {
        let newer = item.patch(&patch).await?;
        let done = if newer == item {
            "not changed"
        } else {
            "labelled"
        };
        ui::line(format!("{} {done}", select::named(&newer)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn changes_are_parsed() {
        assert_eq!(parse("a=b").unwrap(), ("a".into(), Some("b".into())));
        assert_eq!(parse("a=").unwrap(), ("a".into(), Some(String::new())));
        assert_eq!(parse("x/a-").unwrap(), ("x/a".into(), None));
        for wrong in ["=b", "-", "a b=c", "a=b c"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
