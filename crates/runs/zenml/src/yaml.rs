//! Reads the YAML of a config as a JSON value, as far as the launcher needs it. Pure.
//!
//! The pod reads the text itself, with ZenML's parser. Values that JSON cannot represent, such as
//! tuples, are therefore accepted here.

use longshore_model::yaml;
use serde_json::{Map, Number, Value};
use serde_yaml_ng::Value as Yaml;

use super::ZenmlError;

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Value, ZenmlError> {
    yaml::check(text.as_bytes()).map_err(|error| ZenmlError::Yaml(error.to_string()))?;
    let value = serde_yaml_ng::from_str::<Yaml>(text);
    value
        .map(json)
        .map_err(|error| ZenmlError::Yaml(error.to_string()))
}

/// The depth is limited by [`yaml::check`].
fn json(value: Yaml) -> Value {
    match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Number(number) => self::number(&number),
        Yaml::String(text) => Value::String(text),
        Yaml::Sequence(items) => Value::Array(items.into_iter().map(json).collect()),
        Yaml::Mapping(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| (self::key(key), json(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Yaml::Tagged(tagged) => json(tagged.value),
    }
}

fn number(number: &serde_yaml_ng::Number) -> Value {
    let whole = number.as_u64().map(Number::from);
    let whole = whole.or_else(|| number.as_i64().map(Number::from));
    let number = whole.or_else(|| number.as_f64().and_then(Number::from_f64));
    number.map_or(Value::Null, Value::Number)
}

fn key(key: Yaml) -> String {
    match json(key) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
