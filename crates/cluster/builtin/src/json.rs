//! Helpers for JSON objects.

use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// The value at a dotted path.
pub fn at<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = object.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// Returns the string at a dotted path, or an empty string if it does not exist.
pub fn text<'a>(object: &'a Object, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a dotted path.
pub fn number(object: &Object, path: &str) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

/// Returns the object in a field. Inserts an empty object if the field does not contain one.
pub fn child<'a>(object: &'a mut Object, name: &str) -> &'a mut Object {
    let value = object
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // The code above has made it an object.
        _ => unreachable!(),
    }
}

/// Sets a field if it is missing.
pub fn default(object: &mut Object, name: &str, value: impl Into<Value>) {
    if !object.contains_key(name) {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a field if it is missing or an empty string.
pub fn default_text(object: &mut Object, name: &str, value: &str) {
    if object
        .get(name)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        object.insert(name.to_owned(), value.into());
    }
}

/// The objects in a list.
pub fn items<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = &'a Object> {
    object
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
}

/// The objects in a list, mutable.
pub fn items_mut<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    object
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

/// Copies a field from another object; removes it if the other object lacks it.
pub fn copy(from: &Object, to: &mut Object, name: &str) {
    match from.get(name) {
        Some(value) => {
            to.insert(name.to_owned(), value.clone());
        }
        None => {
            to.remove(name);
        }
    }
}

/// Formats a value as Go's `%v` does: `map[a:1 b:[c]]`.
pub fn as_go_shows(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let list: Vec<_> = list.iter().map(as_go_shows).collect();
            format!("[{}]", list.join(" "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{name}:{}", as_go_shows(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}
