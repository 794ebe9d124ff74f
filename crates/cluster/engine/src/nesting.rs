//! Limits the nesting depth of objects. Kubernetes accepts 10,000 levels. The
//! engine traverses objects recursively, and JSON parsers of clients often stop
//! at 128 levels: stored objects must remain readable, including managed
//! fields.

use serde_json::Value;

/// Maximum number of levels of an object. Managed fields add up to four levels.
pub const NESTING: usize = 120;

/// The error message for an object with more levels.
pub(crate) fn too_deep() -> String {
    format!("exceeded max depth: objects may be nested {NESTING} levels deep")
}

/// Returns true if a value has more levels of lists and objects than `levels`.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(list) => levels == 0 || list.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => {
            levels == 0 || fields.values().any(|field| is_deeper(field, levels - 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nesting_counts_lists_and_objects() {
        for (value, levels) in [
            (json!(1), 0),
            (json!([]), 1),
            (json!({"a": 1, "b": []}), 2),
            (json!([[], {"a": [1]}]), 3),
        ] {
            assert!(!is_deeper(&value, levels), "{value}");
            assert!(levels == 0 || is_deeper(&value, levels - 1), "{value}");
        }
    }
}
