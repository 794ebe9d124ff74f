//! Tables of custom kinds, with the columns of their definition.

use std::sync::Arc;

use jiff::Timestamp;
use longshore_builtin::table::{age_cell, columns, duration, text};
use longshore_engine::{CustomKind, PrinterColumn};
use longshore_model::time;
use serde_json::{Value, json};

use super::json_path::JsonPath;

/// The parsed columns of a custom kind.
pub(crate) struct Columns {
    kind: Arc<CustomKind>,
    paths: Vec<Option<JsonPath>>,
}

impl Columns {
    pub(super) fn of(kind: Arc<CustomKind>) -> Self {
        let columns = kind.columns().iter();
        Self {
            paths: columns
                .map(|column| JsonPath::parse(&column.json_path))
                .collect(),
            kind,
        }
    }

    /// Returns the name column and the columns of the definition, which default to the age.
    pub(super) fn definitions(&self) -> Value {
        let own = self.kind.columns().iter().map(|column| {
            let description = match column.description.as_str() {
                "" => format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    column.json_path
                ),
                description => description.to_owned(),
            };
            json!({
                "name": column.name,
                "type": column.r#type,
                "format": column.format,
                "description": description,
                "priority": column.priority,
            })
        });
        let mut all = vec![columns::ANY[0].definition()];
        all.extend(own);
        if self.paths.is_empty() {
            all.push(json!({
                "name": "Age",
                "type": "date",
                "format": "",
                "description": "When the object was made.",
                "priority": 0,
            }));
        }
        all.into()
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![text(object, "/metadata/name").into()];
        if self.paths.is_empty() {
            cells.push(age_cell(object, now));
        }
        for (column, path) in self.kind.columns().iter().zip(&self.paths) {
            let found = path.as_ref().and_then(|path| path.first(object));
            cells.push(found.map_or(Value::Null, |found| cell(column, found, now)));
        }
        cells
    }
}

/// Formats a value by the type of the column; null if the type does not match.
fn cell(column: &PrinterColumn, value: &Value, now: Timestamp) -> Value {
    match (column.r#type.as_str(), value) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.clone().into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => (float as i64).into(),
            _ => value.clone(),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) => match time::parse(text) {
            Some(at) => duration::age(Some(at), now).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: &str) -> PrinterColumn {
        PrinterColumn {
            name: "X".into(),
            r#type: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: ".x".into(),
        }
    }

    #[test]
    fn rule_30_values_are_shown_by_the_type_of_their_column() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap_or_default();
        for (kind, value, shown) in [
            ("string", json!("a"), json!("a")),
            ("string", json!({"a": 1}), json!(r#"{"a":1}"#)),
            ("string", json!(true), json!("true")),
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.7), json!(3)),
            ("integer", json!("3"), Value::Null),
            ("number", json!(1.5), json!(1.5)),
            ("boolean", json!(false), json!(false)),
            ("date", json!("2026-01-02T03:03:05Z"), json!("60s")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", Value::Null, Value::Null),
        ] {
            assert_eq!(cell(&column(kind), &value, now), shown, "{kind} {value}");
        }
    }
}
