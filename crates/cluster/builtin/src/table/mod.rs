//! Tables: objects as rows (`meta.k8s.io` `Table`). The entry of each kind has
//! columns and a pure function that fills the cells.

pub(crate) mod autoscalers;
pub mod columns;
pub(crate) mod devices;
pub mod duration;
pub(crate) mod flow_control;
pub(crate) mod jobs;
pub(crate) mod network;
pub(crate) mod nodes;
pub(crate) mod plain;
pub(crate) mod pods;
pub(crate) mod policies;
pub(crate) mod registrations;
pub(crate) mod services;
pub(crate) mod storage;
pub(crate) mod workloads;

use jiff::Timestamp;
use longshore_model::time;
use serde_json::{Value, json};

/// A column: name, type, format, priority (0 is always shown, 1 only with `-o wide`), description.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub(crate) name: &'static str,
    r#type: &'static str,
    format: &'static str,
    priority: u8,
    description: &'static str,
}

impl Column {
    /// Returns the column as an entry of the `columnDefinitions`.
    #[must_use]
    pub fn definition(&self) -> Value {
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
pub type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// Returns the string at a JSON pointer; empty if it does not exist.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
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

/// Formats the name of an object.
fn name(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

/// Formats the age of an object.
#[must_use]
pub fn age_cell(object: &Value, now: Timestamp) -> Value {
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

/// Returns true if the condition `kind` is `True`.
fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn every_kind_fills_every_column_of_an_empty_object() {
        for rules in kinds::all() {
            for object in [
                json!({}),
                json!({"spec": 1, "status": "x", "metadata": null}),
            ] {
                let cells = (rules.cells)(&object, Timestamp::UNIX_EPOCH);
                assert_eq!(cells.len(), rules.columns.len(), "{}", rules.kind);
                for (cell, column) in cells.iter().zip(rules.columns) {
                    // Kubernetes also puts numbers into string columns.
                    let fits = match column.r#type {
                        "integer" => cell.is_number(),
                        "boolean" => cell.is_boolean() || cell.is_string(),
                        _ => cell.is_string() || cell.is_number() || cell.is_boolean(),
                    };
                    assert!(fits, "{}: {} = {cell}", rules.kind, column.name);
                }
            }
        }
    }
}
