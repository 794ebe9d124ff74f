//! A value together with its path: the building block of validation rules.

use std::collections::HashSet;

use longshore_model::{CauseList, Quantity};
use serde_json::{Map, Value};

use super::meta;
use crate::{cause::Cause, json::Object};

/// The path of a field. Rules build many paths that no message uses, so this
/// avoids the formatter.
pub(super) fn below(path: &str, name: &str) -> String {
    [path, ".", name].concat()
}

/// The path of a list item or of a map entry.
pub(super) fn element(path: &str, key: &str) -> String {
    [path, "[", key, "]"].concat()
}

/// An optional value and its path in messages.
#[derive(Debug, Clone)]
pub(super) struct FieldValue<'a> {
    value: Option<&'a Value>,
    pub(super) path: String,
}

impl<'a> FieldValue<'a> {
    /// A field of an object. Null counts as absent.
    pub(super) fn field(object: &'a Object, name: &str) -> Self {
        Self {
            value: object.get(name).filter(|value| !value.is_null()),
            path: name.to_owned(),
        }
    }

    /// The same value with another path.
    pub(super) fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// A field of an object that is located at a path.
    pub(super) fn of(object: &'a Object, name: &str, path: &str) -> Self {
        Self::field(object, name).with_path(below(path, name))
    }

    /// A field that is not set. It has no path, so no rule may report it.
    pub(super) fn absent() -> Self {
        Self {
            value: None,
            path: String::new(),
        }
    }

    /// Returns a field. If it is not set, no rule reports it.
    pub(super) fn get_optional(&self, name: &str) -> Self {
        match self.value.and_then(|value| value.get(name)) {
            None | Some(Value::Null) => Self::absent(),
            Some(_) => self.get(name),
        }
    }

    pub(super) fn get(&self, name: &str) -> Self {
        if self.value.is_none() && self.path.is_empty() {
            return Self::absent();
        }
        let value = self.value.and_then(|value| value.get(name));
        Self {
            value: value.filter(|value| !value.is_null()),
            path: below(&self.path, name),
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let items = self.value.and_then(Value::as_array);
        let path = items.map(|_| self.path.clone()).unwrap_or_default();
        let items = items.into_iter().flatten().enumerate();
        items.map(move |(index, value)| Self {
            value: Some(value),
            path: element(&path, &index.to_string()),
        })
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let entries = self.value.and_then(Value::as_object);
        let path = entries.map(|_| self.path.clone()).unwrap_or_default();
        let entries = entries.into_iter().flatten();
        entries.map(move |(key, value)| {
            let at = Self {
                value: Some(value),
                path: element(&path, key),
            };
            (key.as_str(), at)
        })
    }

    pub(super) fn is_set(&self) -> bool {
        self.value.is_some()
    }

    pub(super) fn value(&self) -> Value {
        self.value.cloned().unwrap_or_default()
    }

    pub(super) fn raw(&self) -> Option<&'a Value> {
        self.value
    }

    pub(super) fn text(&self) -> &'a str {
        self.value.and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.value.and_then(Value::as_i64)
    }

    pub(super) fn is_true(&self) -> bool {
        self.value.and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn object(&self) -> Option<&'a Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// The number of items or entries.
    pub(super) fn len(&self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    pub(super) fn quantity(&self) -> Option<f64> {
        self.text()
            .parse()
            .ok()
            .map(|quantity: Quantity| quantity.value())
    }
}

/// Collects validation errors.
pub(super) struct Causes<'c>(pub(super) &'c mut CauseList);

impl Causes<'_> {
    pub(super) fn required(&mut self, at: &FieldValue<'_>, detail: &str) {
        self.0.push(Cause::required(&at.path, detail));
    }

    pub(super) fn invalid(&mut self, at: &FieldValue<'_>, detail: &str) {
        self.0.push(Cause::invalid(&at.path, at.value(), detail));
    }

    pub(super) fn forbidden(&mut self, at: &FieldValue<'_>, detail: &str) {
        self.0.push(Cause::forbidden(&at.path, detail));
    }

    pub(super) fn duplicate(&mut self, at: &FieldValue<'_>) {
        self.0.push(Cause::duplicate(&at.path, at.value()));
    }

    pub(super) fn not_supported(&mut self, at: &FieldValue<'_>, words: &[&str]) {
        let value = match at.raw() {
            Some(value) => value.clone(),
            None => "".into(),
        };
        self.0.push(Cause::not_supported(&at.path, value, words));
    }

    /// Requires one of `words`. An absent value is an error.
    pub(super) fn one_of(&mut self, at: &FieldValue<'_>, words: &[&str]) {
        if !words.contains(&at.text()) {
            self.not_supported(at, words);
        }
    }

    /// Like `one_of`, but the value is optional.
    pub(super) fn one_of_if_set(&mut self, at: &FieldValue<'_>, words: &[&str]) {
        if at.is_set() {
            self.one_of(at, words);
        }
    }

    pub(super) fn not_negative(&mut self, at: &FieldValue<'_>) {
        if at.number().is_some_and(|number| number < 0) {
            self.invalid(at, "must be greater than or equal to 0");
        }
    }

    /// Requires a port number.
    pub(super) fn port(&mut self, at: &FieldValue<'_>) {
        if !(1..=65_535).contains(&at.number().unwrap_or_default()) {
            let value = at.number().unwrap_or_default();
            let detail = "must be between 1 and 65535, inclusive";
            self.0.push(Cause::invalid(&at.path, value, detail));
        }
    }

    /// Requires a port number or name.
    pub(super) fn port_or_name(&mut self, at: &FieldValue<'_>) {
        if at.raw().is_some_and(Value::is_string) {
            self.port_name(at);
        } else {
            self.port(at);
        }
    }

    pub(super) fn port_name(&mut self, at: &FieldValue<'_>) {
        let text = at.text();
        if text.len() > 15 {
            self.invalid(at, "must be no more than 15 characters");
        }
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        if !text.bytes().all(|b| plain(b) || b == b'-') {
            self.invalid(
                at,
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            );
        }
        if !text.bytes().any(|b| b.is_ascii_lowercase()) {
            self.invalid(at, "must contain at least one letter (a-z)");
        }
        if text.contains("--") {
            self.invalid(at, "must not contain consecutive hyphens");
        }
        if text.starts_with('-') || text.ends_with('-') {
            self.invalid(at, "must not begin or end with a hyphen");
        }
    }

    pub(super) fn label(&mut self, at: &FieldValue<'_>) {
        meta::label(&at.path, at.text(), self.0);
    }

    pub(super) fn subdomain(&mut self, at: &FieldValue<'_>) {
        meta::subdomain(&at.path, at.text(), self.0);
    }

    pub(super) fn qualified(&mut self, at: &FieldValue<'_>) {
        meta::qualified(&at.path, at.text(), self.0);
    }

    pub(super) fn labels(&mut self, at: &FieldValue<'_>) {
        meta::labels(&at.path, at.raw(), self.0);
    }

    /// Requires a field to be unchanged.
    pub(super) fn immutable(&mut self, before: &FieldValue<'_>, after: &FieldValue<'_>) {
        if before.raw() != after.raw() {
            self.invalid(after, "field is immutable");
        }
    }

    /// Requires a nonnegative number or percentage.
    pub(super) fn number_or_percent(&mut self, at: &FieldValue<'_>) {
        const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
        let is_percent = at
            .text()
            .strip_suffix('%')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
        match at.raw() {
            Some(Value::String(_)) if !is_percent => self.invalid(at, PERCENT),
            Some(Value::Number(_)) => self.not_negative(at),
            _ => {}
        }
    }

    /// Rejects a percentage above 100%.
    pub(super) fn at_most_100_percent(&mut self, at: &FieldValue<'_>) {
        if percent(at).is_some_and(|percent| percent > 100) {
            self.invalid(at, "must not be greater than 100%");
        }
    }

    /// Rejects duplicate values in a list.
    pub(super) fn unique<'a>(&mut self, items: impl Iterator<Item = FieldValue<'a>>) {
        let mut seen = HashSet::new();
        for at in items {
            if !at.text().is_empty() && !seen.insert(at.text()) {
                self.duplicate(&at);
            }
        }
    }
}

/// The number of a percentage.
pub(super) fn percent(at: &FieldValue<'_>) -> Option<i64> {
    at.text().strip_suffix('%')?.parse().ok()
}

/// Returns true if a number or percentage is zero or absent.
pub(super) fn is_zero_or_absent(at: &FieldValue<'_>) -> bool {
    percent(at).or(at.number()).unwrap_or_default() == 0
}
