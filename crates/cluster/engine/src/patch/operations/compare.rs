//! Comparisons by the operation `test`: objects and lists are compared by their members, strings
//! and numbers by their text. The text of the document is the JSON text that Go writes.

use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value, value::RawValue};

/// The JSON texts of the values of a patch.
pub(super) struct Texts<'a> {
    /// The text of each operation's value, if the patch has tests and a text.
    values: Vec<Option<&'a RawValue>>,
    /// Texts of strings and numbers that operations add, if Go would write them differently.
    unusual: HashSet<&'a str>,
}

/// The part of an operation that is compared.
#[derive(serde::Deserialize)]
struct Tested<'a> {
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

impl<'a> Texts<'a> {
    pub(super) fn of(operations: &[Value], text: Option<&'a str>) -> Self {
        let has_tests = operations.iter().any(|operation| operation["op"] == "test");
        let text = text.filter(|_| has_tests);
        let read = text.and_then(|text| serde_json::from_str::<Vec<Tested<'a>>>(text).ok());
        let values: Vec<_> = read.into_iter().flatten().map(|one| one.value).collect();
        let mut unusual = HashSet::new();
        for (operation, value) in operations.iter().zip(&values) {
            if let Some(value) = value.filter(|_| operation["op"] != "test") {
                collect_unusual(value, &mut unusual);
            }
        }
        Self { values, unusual }
    }

    /// Returns true if a value of the document equals the value of a test.
    pub(super) fn are_equal(&self, index: usize, found: &Value, given: &Value) -> bool {
        match self.values.get(index).copied().flatten() {
            Some(text) => self.is_text_of(found, text.get()),
            None => are_equal(found, given),
        }
    }

    fn is_text_of(&self, found: &Value, text: &str) -> bool {
        match found {
            Value::Object(fields) => {
                let given = serde_json::from_str::<HashMap<String, &RawValue>>(text);
                given.is_ok_and(|given| {
                    let mut fields = fields.iter();
                    given.len() == fields.len()
                        && fields.all(|(name, value)| {
                            let text = given.get(name);
                            text.is_some_and(|text| self.is_text_of(value, text.get()))
                        })
                })
            }
            Value::Array(list) => {
                let given = serde_json::from_str::<Vec<&RawValue>>(text);
                given.is_ok_and(|given| {
                    let mut pairs = list.iter().zip(&given);
                    given.len() == list.len()
                        && pairs.all(|(value, text)| self.is_text_of(value, text.get()))
                })
            }
            found => {
                text == encoded(found)
                    || self.unusual.contains(text)
                        && serde_json::from_str::<Value>(text).is_ok_and(|given| given == *found)
            }
        }
    }
}

/// Compares values of a patch without text, for which Go's text is used.
fn are_equal(found: &Value, given: &Value) -> bool {
    match (found, given) {
        (Value::Object(found), Value::Object(given)) => {
            found.len() == given.len()
                && found.iter().all(|(name, value)| {
                    given.get(name).is_some_and(|given| are_equal(value, given))
                })
        }
        (Value::Array(found), Value::Array(given)) => {
            let mut pairs = found.iter().zip(given);
            found.len() == given.len() && pairs.all(|(found, given)| are_equal(found, given))
        }
        (Value::Number(found), Value::Number(given)) => number(found) == number(given),
        (found, given) => found == given,
    }
}

fn collect_unusual<'a>(value: &'a RawValue, unusual: &mut HashSet<&'a str>) {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let fields = serde_json::from_str::<HashMap<String, &RawValue>>(text);
            let fields = fields.unwrap_or_default();
            fields
                .into_values()
                .for_each(|value| collect_unusual(value, unusual));
        }
        Some(b'[') => {
            let list = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
            list.into_iter()
                .for_each(|value| collect_unusual(value, unusual));
        }
        _ => {
            let value = serde_json::from_str::<Value>(text).unwrap_or_default();
            if encoded(&value) != text {
                unusual.insert(text);
            }
        }
    }
}

/// The length of a value as Go writes it.
pub(super) fn encoded_length(value: &Value) -> usize {
    let separators = |members: usize| 2 + members.saturating_sub(1);
    match value {
        Value::Object(fields) => {
            let members = fields
                .iter()
                .map(|(name, value)| string(name).len() + 1 + encoded_length(value));
            separators(fields.len()) + members.sum::<usize>()
        }
        Value::Array(list) => {
            separators(list.len()) + list.iter().map(encoded_length).sum::<usize>()
        }
        scalar => encoded(scalar).len(),
    }
}

/// The text of a string, a number, a Boolean or null as Go writes it.
fn encoded(value: &Value) -> String {
    match value {
        Value::String(text) => string(text),
        Value::Number(found) => number(found),
        other => other.to_string(),
    }
}

/// Go escapes characters that have a meaning in HTML.
fn string(text: &str) -> String {
    let encoded = Value::from(text).to_string();
    let is_special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
    if !encoded.contains(is_special) {
        return encoded;
    }
    let mut escaped = String::with_capacity(encoded.len() + 16);
    for c in encoded.chars() {
        match is_special(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Go writes whole numbers without a fraction, and very large and small ones with an exponent.
fn number(number: &Number) -> String {
    if number.is_i64() {
        return number.to_string();
    }
    let value = number.as_f64().unwrap_or_default();
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        return match text.contains("e-") {
            true => text,
            false => text.replace('e', "e+"),
        };
    }
    value.to_string()
}
