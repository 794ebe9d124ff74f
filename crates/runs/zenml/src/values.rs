//! Values of a config by their paths. Pure.

use serde_json::Value;

use super::ZenmlError;

/// The text at a path; `null` counts as missing.
pub(super) fn text_at<'a>(
    value: &'a Value,
    path: &'static str,
) -> Result<Option<&'a str>, ZenmlError> {
    let (mut inner, mut begin) = (value, "");
    for key in path.split('.') {
        let Value::Object(map) = inner else {
            let place = if begin.is_empty() { "config" } else { begin };
            return Err(wrong(place, "a mapping", inner));
        };
        match map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(found) => inner = found,
        }
        let end = begin.len() + key.len() + usize::from(!begin.is_empty());
        begin = path.get(..end).unwrap_or(path);
    }
    match inner {
        Value::String(text) => Ok(Some(text)),
        other => Err(wrong(path, "a text", other)),
    }
}

/// The error for a value of the wrong type.
pub(super) fn wrong(path: &str, expected: &'static str, value: &Value) -> ZenmlError {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    };
    ZenmlError::Kind {
        path: path.to_owned(),
        expected,
        found,
    }
}
