//! `longshore get`: objects of the cluster, as the server's own columns or as
//! data.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    client::{Cluster, View, kinds::Any},
    model::{KindInfo, LabelSelector},
};
use serde_json::{Value, json};

use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format},
    target::ClusterArgs,
    ui,
};

/// List objects of a kind, or show one
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore get pods
  longshore get jobs -A --output wide
  longshore get pod digits-worker-0 --output yaml
  longshore get pods -l app=web --output name")]
pub(crate) struct GetArgs {
    /// The kind, as in `pods`, `po`, `jobs.batch`
    kind: String,
    /// The name of one object; all of them without it
    name: Option<String>,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// Of all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "name"])]
    all_namespaces: bool,
    /// Only objects whose labels match, as in `app=web,tier!=cache`
    #[arg(long, short = 'l', conflicts_with = "name")]
    selector: Option<String>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn get(args: GetArgs) -> Result<ExitCode> {
    // All that can be refused is refused before a cluster is started.
    let selector = args
        .selector
        .as_deref()
        .map(str::parse::<LabelSelector>)
        .transpose();
    let selector = selector
        .map_err(|error| Error::from_source(Kind::Usage, &error))?
        .filter(|selector| !selector.is_everything());
    let target = args.cluster.open(&config::here()?).await?;
    let result = show(target.cluster(), &args, selector).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(cluster: &Cluster, args: &GetArgs, selector: Option<LabelSelector>) -> Result<()> {
    let mut view = cluster.kind(&args.kind).await?;
    let info = view.kind().clone();
    let namespace = (info.is_namespaced() && !args.all_namespaces).then(|| {
        args.namespace
            .as_deref()
            .unwrap_or_else(|| cluster.default_namespace())
    });
    if let Some(namespace) = namespace {
        view = view.in_namespace(namespace)?;
    }
    if let Some(selector) = &selector {
        view = view.labels(selector.clone());
    }
    match args.output {
        Format::Table | Format::Wide => {
            let table = fetch_table(cluster, &info, namespace, args, selector.as_ref()).await;
            let table = match table {
                Some(table) => table,
                // Says what is wrong, if something is.
                None => plain_table(items(&view, args).await?),
            };
            show_table(&table, &info, args, namespace);
        }
        Format::Name => {
            for item in items(&view, args).await? {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                let group = &info.gvk.group;
                let dot = if group.is_empty() { "" } else { "." };
                ui::line(format!("{}{dot}{group}/{name}", info.singular));
            }
        }
        Format::Json | Format::Yaml => {
            let mut items = items(&view, args).await?;
            let whole = match (&args.name, items.pop()) {
                (Some(_), Some(item)) => item,
                (_, last) => {
                    items.extend(last);
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
                }
            };
            output::value(args.output, &whole)?;
        }
    }
    Ok(())
}

async fn items(view: &View<Any>, args: &GetArgs) -> Result<Vec<Value>> {
    let items = match &args.name {
        Some(name) => vec![view.fetch(name).await?],
        None => view.list().await?.items,
    };
    items.iter().map(|item| Ok(item.raw()?)).collect()
}

/// The server's own columns: what is worth knowing of a kind, it knows best.
/// `None` when it gives none, or no answer at all.
async fn fetch_table(
    cluster: &Cluster,
    info: &KindInfo,
    namespace: Option<&str>,
    args: &GetArgs,
    selector: Option<&LabelSelector>,
) -> Option<Value> {
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let mut path = info.collection_path(namespace);
    if let Some(name) = &args.name {
        path = format!("{path}/{}", encode(name));
    }
    if let Some(selector) = selector {
        path = format!("{path}?labelSelector={}", encode(&selector.to_string()));
    }
    let request = http::Request::get(path)
        .header(http::header::ACCEPT, TABLE)
        .body(Vec::new());
    let table: Value = cluster.kube_client().request(request.ok()?).await.ok()?;
    table["columnDefinitions"].is_array().then_some(table)
}

/// A text as a part of a URL.
fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut out, byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                out.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
            out
        })
}

/// The least that can be said of any object, in the shape of a server's table.
fn plain_table(items: Vec<Value>) -> Value {
    let now = jiff::Timestamp::now().as_second();
    let rows: Vec<Value> = items
        .into_iter()
        .map(|item| {
            let made = item["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap_or_default();
            let age = made
                .parse::<jiff::Timestamp>()
                .map(|made| ui::span(now - made.as_second()));
            json!({"cells": [item["metadata"]["name"], age.ok()], "object": item})
        })
        .collect();
    json!({"columnDefinitions": [{"name": "Name"}, {"name": "Age"}], "rows": rows})
}

fn show_table(table: &Value, info: &KindInfo, args: &GetArgs, namespace: Option<&str>) {
    let no_list = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let wide = args.output == Format::Wide;
    // Priority 0 is for everybody, the others are for the wide table.
    let columns: Vec<(usize, String)> = table["columnDefinitions"]
        .as_array()
        .unwrap_or(&no_list)
        .iter()
        .enumerate()
        .filter(|(_, column)| wide || column["priority"].as_i64().unwrap_or(0) == 0)
        .map(|(n, column)| {
            (
                n,
                column["name"].as_str().unwrap_or_default().to_uppercase(),
            )
        })
        .collect();
    let of_all = info.is_namespaced() && args.all_namespaces;
    let mut header: Vec<&str> = if of_all {
        vec!["NAMESPACE"]
    } else {
        Vec::new()
    };
    header.extend(columns.iter().map(|(_, name)| name.as_str()));
    let rows = list(&table["rows"])
        .iter()
        .map(|row| {
            let namespace = row["object"]["metadata"]["namespace"].as_str();
            let first = of_all.then(|| namespace.unwrap_or_default().to_owned());
            let cells = columns.iter().map(|(n, _)| text(&row["cells"][*n]));
            first.into_iter().chain(cells).collect()
        })
        .collect();
    let empty = match namespace {
        Some(namespace) => format!("No {} in the namespace {namespace}.", info.plural),
        None => format!("No {}.", info.plural),
    };
    output::table(&header, rows, &empty);
}

fn text(cell: &Value) -> String {
    match cell {
        Value::String(text) => text.clone(),
        Value::Null => "<none>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_travel_in_a_url() {
        assert_eq!(encode("a in (b,c),!d"), "a%20in%20%28b%2Cc%29%2C%21d");
    }

    #[test]
    fn cells_are_words() {
        let cells = [json!("x"), json!(3), json!(null), json!(true)].map(|cell| text(&cell));
        assert_eq!(cells, ["x", "3", "<none>", "true"]);
    }
}
