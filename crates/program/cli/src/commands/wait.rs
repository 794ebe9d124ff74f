//! `longshore wait`: waits for a condition of objects.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use longshore::{
    Item,
    client::{Cluster, kinds::Any},
    until,
};

use crate::{
    config,
    error::{Error, Kind, Result},
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// Wait for a condition of objects
///
/// A named object may be created later. On a timeout, the command fails and prints the last
/// state.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore wait pod web
  longshore wait job train --until finished --timeout 3600
  longshore wait deployment web --until condition=Available
  longshore wait pods -l app=web --until gone")]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Condition: ready, finished, gone or condition=NAME
    #[arg(long, value_name = "CONDITION", default_value = "ready", value_parser = parse)]
    until: Until,
    /// Seconds to wait for each object
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The condition to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    Ready,
    Finished,
    Gone,
    Condition(String),
}

fn parse(text: &str) -> Result<Until, String> {
    match text.split_once('=') {
        Some(("condition", name)) if !name.is_empty() => Ok(Until::Condition(name.to_owned())),
        None if text == "ready" => Ok(Until::Ready),
        None if text == "finished" => Ok(Until::Finished),
        None if text == "gone" => Ok(Until::Gone),
        _ => Err("write ready, finished, gone, or condition=NAME".to_owned()),
    }
}

impl Until {
    fn holds(&self, item: &Item<Any>) -> bool {
        match self {
            Self::Ready => until::ready(item),
            Self::Finished => until::finished(item),
            Self::Gone => false,
            Self::Condition(name) => until::condition(name)(item),
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Ready => "ready",
            Self::Finished => "finished",
            Self::Gone => "gone",
            Self::Condition(name) => name,
        }
    }
}

pub(crate) async fn wait(args: WaitArgs) -> Result<ExitCode> {
    let selection = args.select.clone().check()?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = wait_all(target.cluster(), &args, &selection).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn wait_all(cluster: &Cluster, args: &WaitArgs, selection: &Selection) -> Result<()> {
    let view = selection.view(cluster).await?;
    let timeout = Duration::from_secs(args.timeout);
    let done = |named: String| ui::line(format!("{named} {}", args.until.word()));
    if !selection.names.is_empty() {
        for name in &selection.names {
            if args.until == Until::Gone {
                view.wait_gone(name, timeout).await.map_err(late)?;
            } else {
                let holds = |item: &Item<Any>| args.until.holds(item);
                view.wait(name, holds, timeout).await.map_err(late)?;
            }
            done(select::of_kind(view.kind(), name));
        }
        return Ok(());
    }
    let items = view.list().await?.items;
    if items.is_empty() && args.until != Until::Gone {
        return Err(Error::new(Kind::Failed, select::nothing(&view)));
    }
    for item in items {
        if args.until == Until::Gone {
            item.wait_gone(timeout).await.map_err(late)?;
        } else {
            let holds = |item: &Item<Any>| args.until.holds(item);
            item.wait(holds, timeout).await.map_err(late)?;
        }
        done(select::named(&item));
    }
    Ok(())
}

/// Maps a timeout to a failure that is not a cluster error.
fn late(error: longshore::Error) -> Error {
    let is_timeout = error.is_timeout();
    let error = Error::from(error);
    if is_timeout {
        error.with_kind(Kind::Failed)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed() {
        assert_eq!(parse("gone"), Ok(Until::Gone));
        assert_eq!(
            parse("condition=Ready"),
            Ok(Until::Condition("Ready".into()))
        );
        for wrong in ["", "ready=1", "condition=", "condition", "Ready"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
