//! The form in which objects are written: which fields are left out when they
//! are zero, and which are always there. Kubernetes' types say it; the table
//! `facts/zeros.txt` holds it, which `facts/generate.py` takes from them.
//!
//! A line `@package` opens a package. A line `Type word…` describes a type's
//! fields: `field?` is left out when it is zero (an empty text, list or map, 0
//! or false), `field=ZERO` is always there, as the JSON `ZERO` when nothing was
//! said. Fields that are not named are there when they were given.

use std::collections::HashMap;

use serde_json::Value;

static ZEROS: &str = include_str!("facts/zeros.txt");

/// What a type's fields are when nothing was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zeros {
    /// Fields left out when zero.
    pub(crate) omitted: Vec<&'static str>,
    /// Fields that are always there, and their zero values.
    pub(crate) always: Vec<(&'static str, Value)>,
}

/// Reads the table, by full name of type.
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

/// Whether a value says no more than its absence would, where a type leaves
/// zero values out.
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
    fn every_word_is_about_a_field_that_exists() {
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
