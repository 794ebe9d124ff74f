//! Tables: objects as rows (`meta.k8s.io` `Table`). Each kind has its columns
//! and a pure function that fills the cells.

mod autoscalers;
mod columns;
mod custom;
pub(crate) mod duration;
mod jobs;
mod json_path;
mod network;
mod nodes;
mod plain;
mod pods;
mod policies;
mod registrations;
mod services;
mod storage;
mod workloads;

use std::sync::Arc;

use jiff::Timestamp;
use longshore_engine::CustomKind;
use longshore_model::{Gvk, time};
use serde_json::{Value, json};

/// One column: name, type, format, priority (0 is always shown, 1 only with `-o
/// wide`), description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    r#type: &'static str,
    format: &'static str,
    priority: u8,
    description: &'static str,
}

impl Column {
    fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.r#type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

/// Returns the cells of an object's row; ages are relative to the given time.
type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// The columns and cells of a kind.
pub(crate) struct Printer {
    columns: &'static [Column],
    cells: Cells,
    conditions: fn(&Value) -> Option<Value>,
    /// For custom kinds, replaces the other fields.
    custom: Option<custom::Columns>,
}

/// Returns the printer of a custom kind.
pub(crate) fn custom_printer(kind: Arc<CustomKind>) -> Printer {
    Printer {
        columns: &[],
        cells: plain::any,
        conditions: |_| None,
        custom: Some(custom::Columns::of(kind)),
    }
}

/// Returns the printer of a kind; by default with name and age.
pub(crate) fn printer(gvk: &Gvk) -> Printer {
    let (columns, cells): (&'static [Column], Cells) = match (gvk.group.as_ref(), gvk.kind.as_ref())
    {
        ("", "Pod") => (columns::POD, pods::cells),
        ("", "Node") => (columns::NODE, nodes::cells),
        ("", "Service") => (columns::SERVICE, services::cells),
        ("batch", "Job") => (columns::JOB, jobs::cells),
        ("", "Namespace") => (columns::NAMESPACE, plain::namespace),
        ("", "ConfigMap") => (columns::CONFIG_MAP, plain::config_map),
        ("", "Secret") => (columns::SECRET, plain::secret),
        ("", "ServiceAccount") => (columns::SERVICE_ACCOUNT, plain::service_account),
        ("" | "events.k8s.io", "Event") => (columns::EVENT, plain::event),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            (columns::DEFINITION, plain::definition)
        }
        ("coordination.k8s.io", "Lease") => (columns::LEASE, plain::lease),
        (_, kind) => workloads::printer(kind)
            .or_else(|| storage::printer(kind))
            .or_else(|| network::printer(kind))
            .or_else(|| policies::printer(kind))
            .or_else(|| registrations::printer(kind))
            .unwrap_or((columns::ANY, plain::any)),
    };
    let conditions = match (gvk.group.as_ref(), gvk.kind.as_ref()) {
        ("", "Pod") => pods::conditions,
        _ => |_: &Value| None,
    };
    Printer {
        columns,
        cells,
        conditions,
        custom: None,
    }
}

impl Printer {
    /// Returns the `columnDefinitions`.
    pub(crate) fn definitions(&self) -> Value {
        match &self.custom {
            Some(custom) => custom.definitions(),
            None => self.columns.iter().map(Column::definition).collect(),
        }
    }

    /// Returns the cells of an object's row, one per column.
    pub(crate) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.custom {
            Some(custom) => custom.cells(object, now),
            None => (self.cells)(object, now),
        }
    }

    /// Returns the conditions of an object's row; finished pods have one.
    pub(crate) fn conditions(&self, object: &Value) -> Option<Value> {
        (self.conditions)(object)
    }
}

/// Returns the string at a JSON pointer; empty if there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the list at a JSON pointer; empty if absent.
fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the number of entries of the map or list at a JSON pointer.
fn count(object: &Value, pointer: &str) -> usize {
    match object.pointer(pointer) {
        Some(Value::Array(entries)) => entries.len(),
        Some(Value::Object(entries)) => entries.len(),
        _ => 0,
    }
}

/// Returns the boolean at a JSON pointer; false if absent.
fn boolean(object: &Value, pointer: &str) -> Value {
    let boolean = object.pointer(pointer).and_then(Value::as_bool);
    boolean.unwrap_or_default().into()
}

/// Joins the strings at a JSON pointer in each object.
fn joined(objects: &[Value], pointer: &str, between: &str) -> String {
    let words: Vec<&str> = objects.iter().map(|object| text(object, pointer)).collect();
    words.join(between)
}

/// Formats labels as `key=value`, or as the placeholder for none.
fn labels(object: &Value, pointer: &str) -> String {
    let labels = object.pointer(pointer).and_then(Value::as_object);
    let parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or(&parts.join(","), "<none>").to_owned()
}

/// Formats a label selector.
fn selector(object: &Value, pointer: &str) -> String {
    let mut parts = Vec::new();
    match labels(object, &format!("{pointer}/matchLabels")) {
        none if none == "<none>" => {}
        labels => parts.push(labels),
    }
    for requirement in list(object, &format!("{pointer}/matchExpressions")) {
        let key = text(requirement, "/key");
        let values: Vec<&str> = list(requirement, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match text(requirement, "/operator") {
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            _ => format!("{key} in ({})", values.join(",")),
        });
    }
    or(&parts.join(","), "<none>").to_owned()
}

/// Returns the time at a JSON pointer.
fn time_at(object: &Value, pointer: &str) -> Option<Timestamp> {
    time::parse(text(object, pointer))
}

/// Formats the age of an object.
fn age_cell(object: &Value, now: Timestamp) -> Value {
    duration::age(time_at(object, "/metadata/creationTimestamp"), now).into()
}

/// Returns `text`, or the placeholder if it is empty.
fn or<'a>(text: &'a str, nothing: &'a str) -> &'a str {
    if text.is_empty() { nothing } else { text }
}

/// Returns the status of the condition `kind`, if it exists.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
}

/// Whether the condition `kind` is `True`.
fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

#[cfg(test)]
mod tests {
    use longshore_model::kind::BUILTIN;

    use super::*;

    #[test]
    fn every_kind_fills_every_column_of_an_empty_object() {
        for info in BUILTIN {
            let printer = printer(&info.gvk);
            for object in [
                json!({}),
                json!({"spec": 1, "status": "x", "metadata": null}),
            ] {
                let cells = printer.cells(&object, Timestamp::UNIX_EPOCH);
                assert_eq!(cells.len(), printer.columns.len(), "{}", info.gvk);
                for (cell, column) in cells.iter().zip(printer.columns) {
                    // The real server, too, puts numbers into string columns.
                    let fits = match column.r#type {
                        "integer" => cell.is_number(),
                        "boolean" => cell.is_boolean() || cell.is_string(),
                        _ => cell.is_string() || cell.is_number() || cell.is_boolean(),
                    };
                    assert!(fits, "{}: {} = {cell}", info.gvk, column.name);
                }
            }
        }
    }
}
