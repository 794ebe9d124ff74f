//! Uniqueness of values in set lists and of keys in map lists.

use longshore_model::CauseList;
use serde_json::{Map, Value};

use super::{Structural, causes};
use crate::ListType;

impl Structural {
    /// Reports duplicate values and keys.
    #[must_use]
    pub fn duplicates(&self, object: &Value) -> CauseList {
        let mut out = CauseList::new();
        find(self, object, &mut String::new(), &mut out);
        out
    }
}

fn find(schema: &Structural, value: &Value, path: &mut String, out: &mut CauseList) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let declared = schema.properties.contains_key(name);
                let Some(inner) = schema.at_key(name) else {
                    continue;
                };
                if !declared {
                    path.push_str(&format!("[{name}]"));
                } else if path.is_empty() {
                    path.push_str(name);
                } else {
                    path.push_str(&format!(".{name}"));
                }
                find(inner, value, path, out);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => report_duplicates(items.iter().cloned(), path, out),
                Some(ListType::Map) => map_keys(schema, items, path, out),
                _ => {}
            }
            let Some(inner) = schema.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find(inner, item, path, out);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn map_keys(schema: &Structural, items: &[Value], path: &str, out: &mut CauseList) {
    for (index, item) in items.iter().enumerate() {
        if !item.is_object() {
            let path = format!("{path}[{index}]");
            let why = "must be an object for an array of list-type map";
            out.push(causes::invalid(&path, item, why));
        }
    }
    let keys = items.iter().map(|item| {
        let key = |name: &String| Some((name.clone(), item.get(name)?.clone()));
        Value::Object(
            schema
                .list_map_keys
                .iter()
                .filter_map(key)
                .collect::<Map<_, _>>(),
        )
    });
    report_duplicates(keys, path, out);
}

/// Reports the second position of each duplicate value.
fn report_duplicates(values: impl Iterator<Item = Value>, path: &str, out: &mut CauseList) {
    let mut seen = std::collections::HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_insert(0);
        *times += 1;
        if *times == 2 {
            out.push(causes::duplicate(&format!("{path}[{index}]"), &value));
        }
    }
}
