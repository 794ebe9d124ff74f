//! Removes the contents of Secrets, and fields that are only noise, from objects. Pure.

use serde_json::{Map, Value};

/// An annotation that contains a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object as shown: without `managedFields`, and for a Secret with the size of each value
/// instead of the value.
pub(crate) fn redacted(mut object: Value) -> Value {
    let is_secret = object["kind"] == "Secret";
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations") {
            remove(annotations, LAST_APPLIED);
        }
    }
    if is_secret {
        for field in ["data", "stringData"] {
            let values = object.get_mut(field).and_then(Value::as_object_mut);
            values.map(hide);
        }
    }
    object
}

fn remove(value: &mut Value, key: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(key);
    }
}

fn hide(values: &mut Map<String, Value>) {
    for value in values.values_mut() {
        let size = value.as_str().map_or(0, str::len);
        *value = format!("(hidden, {size} characters)").into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_of_secrets_are_hidden() {
        let secret = json!({
            "kind": "Secret",
            "metadata": {
                "name": "a",
                "managedFields": [{"manager": "x"}],
                "annotations": {LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "b": "c"},
            },
            "data": {"password": "aHVudGVyMg=="},
            "stringData": {"token": "hunter2"},
        });
        let shown = redacted(secret);
        assert_eq!(
            shown,
            json!({
                "kind": "Secret",
                "metadata": {"name": "a", "annotations": {"b": "c"}},
                "data": {"password": "(hidden, 12 characters)"},
                "stringData": {"token": "(hidden, 7 characters)"},
            })
        );
    }

    #[test]
    fn other_objects_keep_their_data() {
        let map =
            json!({"kind": "ConfigMap", "metadata": {"managedFields": []}, "data": {"a": "b"}});
        let shown = redacted(map);
        assert_eq!(
            shown,
            json!({"kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}})
        );
        assert_eq!(redacted(json!(null)), json!(null));
    }
}
