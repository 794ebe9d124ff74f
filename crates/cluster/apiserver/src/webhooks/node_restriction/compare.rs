//! Compares objects by Kubernetes' rules: absent and empty fields are equal.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns true if a value is equal to an absent one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if two values are equal.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    differing(a, b).is_none()
}

/// The paths that differ, separated by commas; `None` if the values are equal.
pub(super) fn differing(a: &Value, b: &Value) -> Option<String> {
    let mut paths = Vec::new();
    compare(a, b, "", &mut paths);
    (!paths.is_empty()).then(|| paths.join(", "))
}

fn compare(a: &Value, b: &Value, path: &str, paths: &mut Vec<String>) {
    let named = || match path {
        "" => "object".to_owned(),
        path => path.to_owned(),
    };
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let inner = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                compare(&a[name], &b[name], &inner, paths);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            let is_same = |(a, b)| is_same(a, b);
            if left.len() != right.len() || !left.iter().zip(right).all(is_same) {
                paths.push(named());
            }
        }
        _ if is_empty(a) && is_empty(b) => {}
        _ if a == b => {}
        _ => paths.push(named()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_and_absent_fields_are_equal() {
        let object = json!({"a": [], "b": {"c": ""}, "d": null, "e": [{"f": 1, "g": ""}]});
        assert!(is_same(&object, &json!({"e": [{"f": 1}]})));
        assert!(is_same(&Value::Null, &json!([])));
        assert!(!is_same(&Value::Null, &json!([{}])));
        assert!(!is_same(&json!({"a": false}), &json!({})));
    }

    #[test]
    fn differing_fields_are_named() {
        let old = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"list": [1], "size": 1}});
        let new = json!({"metadata": {"labels": {"a": "2"}}, "spec": {"list": [1, 2], "size": 1}});
        let fields = differing(&old, &new);
        assert_eq!(fields.as_deref(), Some("metadata.labels.a, spec.list"));
        assert_eq!(differing(&old, &old), None);
    }
}
