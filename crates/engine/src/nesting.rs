//! How deep objects may be nested. Kubernetes takes 10,000 levels. Here walks
//! over objects are plain recursion, and clients' JSON parsers are known to
//! stop at 128: what is kept must be readable, managed fields included.

use serde_json::Value;

/// Levels of an object, at most. Its managed fields have up to four more.
pub const NESTING: usize = 120;

/// What is said of an object with more levels.
pub(crate) fn too_deep() -> String {
    format!("exceeded max depth: objects may be nested {NESTING} levels deep")
}

/// Whether a value has more levels of lists and objects than this.
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
    fn levels_are_lists_and_objects() {
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
