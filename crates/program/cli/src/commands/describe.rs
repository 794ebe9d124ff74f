//! `longshore describe`: prints objects and their events.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    Item,
    client::{Cluster, kinds::Any},
};
use serde_json::{Map, Value};

use longshore::launcher::terminal_text::escaped;

use crate::{
    config,
    error::Result,
    select::{self, SelectArgs, Selection},
    target::ClusterArgs,
    ui,
};

/// Print objects in a readable form, with their events
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore describe pod web
  longshore describe jobs -l app=shop")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn describe(args: DescribeArgs) -> Result<ExitCode> {
    let selection = args.select.check()?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = show(target.cluster(), &selection).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn show(cluster: &Cluster, selection: &Selection) -> Result<()> {
    let view = selection.view(cluster).await?;
    let items = selection.items(&view).await?;
    if items.is_empty() {
        ui::note(select::nothing(&view));
    }
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            ui::line("");
        }
        describe_one(item).await?;
    }
    Ok(())
}

/// Metadata fields without useful information for users.
const HIDDEN: [&str; 5] = [
    "managedFields",
    "uid",
    "resourceVersion",
    "generation",
    "selfLink",
];

async fn describe_one(item: &Item<Any>) -> Result<()> {
    let raw = item.raw()?;
    let paint = ui::Paint::stdout();
    ui::line(paint.bold(&select::named(item)));
    ui::line(in_a_line(&item.state()));
    for (key, value) in raw.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => outline(key, &without_hidden(value), 0),
            // Do not print secret values.
            "data" if raw["kind"] == "Secret" => sizes(key, value),
            _ => outline(key, value, 0),
        }
    }
    let events = item.events().await?;
    if events.is_empty() {
        ui::line("events: none");
        return Ok(());
    }
    ui::line("events:");
    let now = jiff::Timestamp::now().as_second();
    let mut rows = vec![
        ["AGE", "TYPE", "REASON", "FROM", "MESSAGE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for event in events {
        let age = event
            .last_seen()?
            .map(|time| ui::span(now - time.as_second()));
        let times = match event.count()? {
            0 | 1 => String::new(),
            count => format!(" (x{count})"),
        };
        rows.push(vec![
            age.unwrap_or_default() + &times,
            event.event_type()?.to_string(),
            event.reason()?,
            event.source()?,
            event.message()?.trim().to_owned(),
        ]);
    }
    for line in ui::columns(&rows) {
        ui::line(format!("  {line}"));
    }
    Ok(())
}

fn without_hidden(metadata: &Value) -> Value {
    let shown = metadata.as_object().into_iter().flatten();
    let shown = shown.filter(|(key, _)| !HIDDEN.contains(&key.as_str()));
    Value::Object(
        shown
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Prints a value as an indented outline, one field per line. Control characters are escaped,
/// because any client may have written the object.
fn outline(key: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let key = in_a_line(key);
    match value {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() => {
            ui::line(format!("{indent}{key}:"));
            for (key, value) in fields {
                outline(key, value, depth + 1);
            }
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            ui::line(format!("{indent}{key}:"));
            for (n, value) in list.iter().enumerate() {
                outline(&name_of(value, n), value, depth + 1);
            }
        }
        Value::Array(list) => {
            let words: Vec<String> = list.iter().map(word).collect();
            ui::line(format!("{indent}{key}: {}", words.join(", ")));
        }
        Value::String(text) if text.contains('\n') => {
            ui::line(format!("{indent}{key}:"));
            for line in text.lines() {
                ui::line(format!("{indent}  {}", escaped(line)));
            }
        }
        other => ui::line(format!("{indent}{key}: {}", word(other))),
    }
}

/// The label of a list item: its name or type, or its number.
fn name_of(value: &Value, n: usize) -> String {
    let called = ["name", "type", "key", "ip"]
        .iter()
        .find_map(|key| value[*key].as_str());
    called.map_or_else(|| format!("- {n}"), |name| format!("- {name}"))
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => in_a_line(text),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        other => in_a_line(&other.to_string()),
    }
}

fn in_a_line(text: &str) -> String {
    escaped(text).replace('\n', "\\n")
}

fn sizes(key: &str, value: &Value) {
    let fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    ui::line(format!("{key}:"));
    for (key, value) in fields {
        // Base64 without padding has four characters per three bytes.
        let text = value.as_str().unwrap_or_default().trim_end_matches('=');
        let key = in_a_line(&key);
        ui::line(format!("  {key}: {} bytes", text.len() * 3 / 4));
    }
}
