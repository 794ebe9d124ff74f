//! The encoding of zero values: fields that are omitted when they are zero, and fields that are
//! always present. `facts/generate.py` extracts this from the Kubernetes types to the table
//! `facts/zeros.txt`.
//!
//! A line `@package` starts a package. A line `Type word…` describes the fields
//! of a type: `field?` is omitted when it is zero (an empty string, list or
//! map, 0 or false); `field=ZERO` is always present and defaults to the JSON
//! value `ZERO`. Other fields are present if they are set.

use std::collections::HashMap;

use serde_json::Value;

static ZEROS: &str = include_str!("facts/zeros.txt");

/// The defaults of a type's fields.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zeros {
    /// Fields that are omitted when zero.
    pub(crate) omitted: Vec<&'static str>,
    /// Fields that are always present, and their zero values.
    pub(crate) always: Vec<(&'static str, Value)>,
}

/// Parses the table; the key is the full type name.
pub(crate) fn read() -> HashMap<String, Zeros> {
    let mut table = HashMap::new();
    let mut package = "";
    for line in ZEROS.lines() {
        if let Some(name) = line.strip_prefix('@') {
            package = name;
            continue;
        }
        let mut words = line.split(' ');
        let Some(name) = words.next() else { continue };
        let mut zeros = Zeros::default();
        for word in words {
            if let Some(field) = word.strip_suffix('?') {
                zeros.omitted.push(field);
            } else if let Some((field, zero)) = word.split_once('=') {
                let zero = serde_json::from_str(zero).unwrap_or_default();
                zeros.always.push((field, zero));
            }
        }
        table.insert(format!("{package}.{name}"), zeros);
    }
    table
}

/// Returns true if a value is equivalent to a missing one for types that omit zero values.
#[must_use]
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(word) => !word,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, registry};

    #[test]
    fn every_word_describes_an_existing_field() {
        for (name, zeros) in read() {
            let Some(at) = registry().named(&name) else {
                continue;
            };
            if at.shape() != Shape::Object {
                continue;
            }
            let always = zeros.always.iter().map(|(field, _)| field);
            for field in zeros.omitted.iter().chain(always) {
                assert!(at.field(field).is_some(), "{name}.{field}");
            }
        }
    }
}
