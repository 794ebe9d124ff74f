//! `longshore runs --all-contexts`: the runs of all named contexts.

use std::time::Duration;

use longshore::{
    LabelSelector,
    client::Cluster,
    launcher::{
        Owner, RunSummary,
        config::ClusterSettings,
        runs::{self as history, RunFilter, RunOrder},
    },
};
use serde_json::{Value, json};

use super::{Columns, RunsArgs, header, row};
use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format},
    ui,
};

/// The timeout for the response of a cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The runs of a context, or the reason why they are not known.
type Answer = (String, Result<Known>);

/// The runs of a context that match, and the user's name in its cluster.
struct Known {
    runs: Vec<RunSummary>,
    me: Owner,
}

/// Lists the runs of all contexts, newest first. A cluster that does not answer is reported.
pub(super) async fn show(
    args: &RunsArgs,
    selector: &LabelSelector,
    filter: &RunFilter,
) -> Result<()> {
    let configured = config::here()?;
    if configured.contexts.is_empty() {
        let message = "--all-contexts: the longshore.toml of the current folder names no contexts";
        return Err(Error::usage(message).hint(
            "name each cluster: [contexts.prod], with `context` or `kubeconfig` (see docs/contexts.md)",
        ));
    }
    let asking = configured.contexts.keys().map(|name| {
        let asked = ask(args, &configured, name, (selector, filter));
        async move {
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, asked).await;
            let silent = || {
                let message = format!("no response within {} s", ANSWER_TIMEOUT.as_secs());
                Err(Error::new(Kind::Cluster, message))
            };
            (name.clone(), answer.unwrap_or_else(|_| silent()))
        }
    });
    let answers: Vec<Answer> = futures::future::join_all(asking).await;
    let mut found: Vec<(String, RunSummary)> = Vec::new();
    let mut has_others = false;
    let (mut failed, count) = (0, answers.len());
    let mut last = None;
    for (name, answer) in answers {
        match answer {
            Ok(Known { runs, me }) => {
                has_others |= args.columns(Some(&me), runs.iter()).owner;
                found.extend(runs.into_iter().map(|run| (name.clone(), run)));
            }
            Err(error) => {
                ui::warning(format!("context {name}: {}", error.message()));
                failed += 1;
                last = Some(error);
            }
        }
    }
    if let Some(error) = last.filter(|_| failed == count) {
        let message = format!("none of {count} contexts answered");
        return Err(Error::new(error.kind(), message));
    }
    found.sort_by_key(|(_, run)| std::cmp::Reverse(run.created));
    let order = RunOrder::from(args.sort);
    found.sort_by(|(_, one), (_, other)| order.compare(one, other));
    let all = found.len();
    found.truncate(args.limit.unwrap_or(all));
    print(&found, args, (filter, has_others))?;
    super::report_limit(all - found.len());
    Ok(())
}

/// The runs of a context.
async fn ask(
    args: &RunsArgs,
    configured: &ClusterSettings,
    name: &str,
    (selector, filter): (&LabelSelector, &RunFilter),
) -> Result<Known> {
    let target = args.cluster.in_context(name).open(configured).await?;
    let own = target.cluster().default_namespace();
    let namespace = args.namespace.as_deref().unwrap_or(own);
    let namespace = (!args.all_namespaces).then_some(namespace);
    let found = matching(args, target.cluster(), namespace, (selector, filter)).await;
    target.close().await?;
    found
}

async fn matching(
    args: &RunsArgs,
    cluster: &Cluster,
    namespace: Option<&str>,
    (selector, filter): (&LabelSelector, &RunFilter),
) -> Result<Known> {
    let me = Owner::current(cluster).await?;
    let (selector, filter) = args.of_owner(&me, selector.clone(), filter.clone())?;
    let mut runs = history::list_matching(cluster, namespace, &selector).await?;
    runs.retain(|run| filter.matches(run));
    Ok(Known { runs, me })
}

fn print(
    found: &[(String, RunSummary)],
    args: &RunsArgs,
    (filter, has_others): (&RunFilter, bool),
) -> Result<()> {
    match args.output {
        Format::Table | Format::Wide => {
            let columns = Columns {
                owner: has_others,
                ..args.columns(None, std::iter::empty())
            };
            let mut header = header(columns);
            header.insert(0, "CONTEXT");
            let rows = found.iter().map(|(name, run)| {
                let mut row = row(run, columns);
                row.insert(0, name.clone());
                row
            });
            output::table(&header, rows.collect(), super::nothing(args, filter));
        }
        Format::Name => found
            .iter()
            .for_each(|(name, run)| ui::line(format!("{name} {}", run.run.name))),
        Format::Json | Format::Yaml => {
            let values = found.iter().map(|(name, run)| {
                let mut value = run.to_json();
                value["context"] = json!(name);
                value
            });
            let values: Vec<Value> = values.collect();
            output::value(args.output, &values)?;
        }
    }
    Ok(())
}
