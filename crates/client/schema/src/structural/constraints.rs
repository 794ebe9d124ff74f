//! Constraints of a schema other than the type.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    Structural,
    patterns::{self, Compiled},
    strings,
};

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Constraints {
    pub(super) format: Option<String>,
    pub(super) pattern: Option<Pattern>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    pub(super) one_of_values: Vec<Value>,
    pub(super) required: Vec<String>,
    pub(super) all_of: Vec<Structural>,
    pub(super) any_of: Vec<Structural>,
    pub(super) one_of: Vec<Structural>,
    pub(super) not: Option<Box<Structural>>,
}

/// A regular expression and its source. A pattern that cannot be compiled
/// matches everything; validation rejects definitions with such patterns.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) regex: Option<Arc<Compiled>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Constraints {
    pub(super) fn parse(fields: &Map<String, Value>) -> Self {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
        let size = |name: &str| fields.get(name).and_then(Value::as_u64);
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        let list = |name: &str| {
            let schemas = fields.get(name).and_then(Value::as_array);
            schemas
                .into_iter()
                .flatten()
                .map(Structural::node)
                .collect()
        };
        Self {
            format: text("format"),
            pattern: text("pattern").map(|text| Pattern {
                regex: patterns::compile(&text).ok(),
                text,
            }),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            one_of_values: fields
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            required: strings(fields.get("required")),
            all_of: list("allOf"),
            any_of: list("anyOf"),
            one_of: list("oneOf"),
            not: fields
                .get("not")
                .filter(|not| not.is_object())
                .map(|not| Box::new(Structural::node(not))),
        }
    }
}
