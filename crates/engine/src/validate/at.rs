//! A value and where it stands: what rules are written with.

use std::collections::HashSet;

use longshore_model::{Quantity, StatusCause};
use serde_json::{Map, Value};

use super::meta;
use crate::{cause::Cause, json::Object};

/// The path of a field. Rules name many paths that no message ever names, so
/// they are put together without the formatter.
pub(super) fn below(path: &str, name: &str) -> String {
    [path, ".", name].concat()
}

/// The path of a list's item, or of a map's entry.
pub(super) fn element(path: &str, key: &str) -> String {
    [path, "[", key, "]"].concat()
}

/// A value, absent or there, and its path as messages name it.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    value: Option<&'a Value>,
    pub(super) path: String,
}

impl<'a> At<'a> {
    /// A field of an object. Null is absent.
    pub(super) fn field(object: &'a Object, name: &str) -> Self {
        Self {
            value: object.get(name).filter(|value| !value.is_null()),
            path: name.to_owned(),
        }
    }

    /// The same value under another path.
    pub(super) fn called(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// A field of an object that stands at a path.
    pub(super) fn of(object: &'a Object, name: &str, path: &str) -> Self {
        Self::field(object, name).called(below(path, name))
    }

    pub(super) fn get(&self, name: &str) -> Self {
        let value = self.value.and_then(|value| value.get(name));
        Self {
            value: value.filter(|value| !value.is_null()),
            path: below(&self.path, name),
        }
    }

    /// The elements of a list.
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

    /// How many elements or entries there are.
    pub(super) fn len(&self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    pub(super) fn amount(&self) -> Option<f64> {
        self.text()
            .parse()
            .ok()
            .map(|quantity: Quantity| quantity.value())
    }
}

/// What is wrong, so far.
pub(super) struct Causes<'c>(pub(super) &'c mut Vec<StatusCause>);

impl Causes<'_> {
    pub(super) fn required(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Cause::required(&at.path, detail));
    }

    pub(super) fn invalid(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Cause::invalid(&at.path, at.value(), detail));
    }

    pub(super) fn forbidden(&mut self, at: &At<'_>, detail: &str) {
        self.0.push(Cause::forbidden(&at.path, detail));
    }

    pub(super) fn duplicate(&mut self, at: &At<'_>) {
        self.0.push(Cause::duplicate(&at.path, at.value()));
    }

    pub(super) fn not_supported(&mut self, at: &At<'_>, words: &[&str]) {
        self.0
            .push(Cause::not_supported(&at.path, at.text(), words));
    }

    /// A word that must be one of some; one that is missing is none of them.
    pub(super) fn one_of(&mut self, at: &At<'_>, words: &[&str]) {
        if !words.contains(&at.text()) {
            self.not_supported(at, words);
        }
    }

    /// As `one_of`, for words that may be left out.
    pub(super) fn one_of_if_set(&mut self, at: &At<'_>, words: &[&str]) {
        if at.is_set() {
            self.one_of(at, words);
        }
    }

    pub(super) fn not_negative(&mut self, at: &At<'_>) {
        if at.number().is_some_and(|number| number < 0) {
            self.invalid(at, "must be greater than or equal to 0");
        }
    }

    /// A port's number.
    pub(super) fn port(&mut self, at: &At<'_>) {
        if !(1..=65_535).contains(&at.number().unwrap_or_default()) {
            let value = at.number().unwrap_or_default();
            let detail = "must be between 1 and 65535, inclusive";
            self.0.push(Cause::invalid(&at.path, value, detail));
        }
    }

    /// A port's number or name.
    pub(super) fn port_or_name(&mut self, at: &At<'_>) {
        if at.raw().is_some_and(Value::is_string) {
            self.port_name(at);
        } else {
            self.port(at);
        }
    }

    pub(super) fn port_name(&mut self, at: &At<'_>) {
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

    pub(super) fn label(&mut self, at: &At<'_>) {
        meta::label(&at.path, at.text(), self.0);
    }

    pub(super) fn subdomain(&mut self, at: &At<'_>) {
        meta::subdomain(&at.path, at.text(), self.0);
    }

    pub(super) fn qualified(&mut self, at: &At<'_>) {
        meta::qualified(&at.path, at.text(), self.0);
    }

    pub(super) fn labels(&mut self, at: &At<'_>) {
        meta::labels(&at.path, at.raw(), self.0);
    }

    /// A field that may not change.
    pub(super) fn immutable(&mut self, before: &At<'_>, after: &At<'_>) {
        if before.raw() != after.raw() {
            self.invalid(after, "field is immutable");
        }
    }

    /// A number or a percentage, not negative.
    pub(super) fn number_or_percent(&mut self, at: &At<'_>) {
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

    /// A percentage is at most all.
    pub(super) fn at_most_all(&mut self, at: &At<'_>) {
        if percent(at).is_some_and(|percent| percent > 100) {
            self.invalid(at, "must not be greater than 100%");
        }
    }

    /// Values of a list that are there twice.
    pub(super) fn unique<'a>(&mut self, items: impl Iterator<Item = At<'a>>) {
        let mut seen = HashSet::new();
        for at in items {
            if !at.text().is_empty() && !seen.insert(at.text()) {
                self.duplicate(&at);
            }
        }
    }
}

/// The number before the sign of a percentage.
pub(super) fn percent(at: &At<'_>) -> Option<i64> {
    at.text().strip_suffix('%')?.parse().ok()
}

/// Whether a number or percentage is zero or not said.
pub(super) fn is_none(at: &At<'_>) -> bool {
    percent(at).or(at.number()).unwrap_or_default() == 0
}
