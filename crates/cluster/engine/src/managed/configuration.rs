//! Merges a configuration without a manager into an object, as policies do.

use longshore_builtin::json::Object;
use longshore_schema::{OwnedType, Ownership};
use serde_json::Value;

use super::{check, element, merge};

/// Returns the object merged with a configuration.
///
/// # Errors
/// The configuration does not match its schema, or sets a value that can be replaced only as a
/// whole.
pub(crate) fn merged(
    root: OwnedType<'_>,
    live: &Object,
    config: &Object,
) -> Result<Object, String> {
    if let Some(problem) = check::configuration(root, config) {
        return Err(format!(
            "failed to convert patch object to typed object: {problem}"
        ));
    }
    let mut atomics = Vec::new();
    for (name, value) in config {
        if let Some(at) = root.field(name) {
            find_atomics(at, value, &mut format!(".{name}"), &mut atomics);
        }
    }
    if !atomics.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        ));
    }
    Ok(merge::merge(root, live, config))
}

/// Finds the lists and objects that are owned as a whole.
fn find_atomics(at: OwnedType<'_>, value: &Value, path: &mut String, found: &mut Vec<String>) {
    let is_whole = at.ownership(value) == Ownership::Whole;
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if is_whole {
                found.push(path.clone());
            }
            for (name, value) in fields {
                if let Some(below) = at.field(name) {
                    element::format_into(&element::field(name), path);
                    find_atomics(below, value, path, found);
                    path.truncate(length);
                }
            }
        }
        Value::Array(items) => {
            if is_whole {
                found.push(path.clone());
            }
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_atomics(at.items(), item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
