//! `longshore watch`: prints changes of objects.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    Item, WatchEvent,
    client::{Cluster, kinds::Any},
};
use serde_json::json;

use crate::{
    config,
    error::Result,
    output::{self, Format},
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// Watch objects and print changes, until Ctrl-C
///
/// The watch reconnects after connection failures. If the server no longer has the changes in
/// between, the command prints RESYNC with all current objects.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore watch pods
  longshore watch pods -A --field-selector status.phase=Failed
  longshore watch jobs --output json | jq .object.status")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Output format, one line per change
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn watch(args: WatchArgs) -> Result<ExitCode> {
    let selection = args.select.clone().check()?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = tokio::select! {
        result = follow(target.cluster(), &selection, args.output) => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn follow(cluster: &Cluster, selection: &Selection, format: Format) -> Result<()> {
    let view = selection.view(cluster).await?;
    let mut watch = view.watch().await?;
    let wanted = |item: &Item<Any>| {
        selection.names.is_empty() || selection.names.iter().any(|name| name == item.name())
    };
    while !ui::output_closed() {
        let (event, items) = match watch.next(None).await? {
            WatchEvent::Added(item) => ("ADDED", vec![item]),
            WatchEvent::Modified(item) => ("MODIFIED", vec![item]),
            WatchEvent::Deleted(item) => ("DELETED", vec![item]),
            WatchEvent::Resync(list) => ("RESYNC", list.items),
        };
        for item in items.iter().filter(|item| wanted(item)) {
            show(event, item, selection.all_namespaces, format)?;
        }
        ui::flush();
    }
    Ok(())
}

fn show(event: &str, item: &Item<Any>, of_all: bool, format: Format) -> Result<()> {
    match format {
        Format::Json => {
            let line = json!({"type": event, "object": item.raw()?});
            ui::json(&line.to_string());
        }
        Format::Yaml => {
            ui::line("---");
            output::value(format, &json!({"type": event, "object": item.raw()?}))?;
        }
        Format::Name => ui::line(select::named(item)),
        Format::Table | Format::Wide => {
            let namespace = item.namespace().filter(|_| of_all);
            let namespace = namespace
                .map(|name| format!("{name}  "))
                .unwrap_or_default();
            let named = select::named(item);
            let state = item.state();
            ui::line(format!("{event:<8}  {namespace}{named}  {state}"));
        }
    }
    Ok(())
}
