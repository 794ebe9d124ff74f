//! Field selectors: `status.phase!=Running,metadata.name=a`.

use std::{fmt, str::FromStr};

use super::SelectorError;

/// A field selector: dotted paths that must have, or not have, a value.
///
/// ```
/// use longshore_model::FieldSelector;
/// let selector: FieldSelector = "status.phase!=Running,metadata.name=a".parse().unwrap();
/// assert!(selector.matches_with(|path| Some(if path == "metadata.name" { "a" } else { "Failed" }.into())));
/// assert!("status.phase".parse::<FieldSelector>().is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<(String, bool, String)>,
}

impl FieldSelector {
    /// Matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether it has no term.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds: the field at `path` has `value`.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.terms.push((path.into(), true, value.into()));
        self
    }

    /// Adds the terms of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.terms.extend(other.terms);
        self
    }

    /// The paths it names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(path, ..)| path.as_str())
    }

    /// The value that `path` must have, if it must have one.
    #[must_use]
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|(p, equal, _)| *equal && p == path)
            .map(|(.., v)| v.as_str())
    }

    /// Whether all terms hold; `get` gives a field's text, `None` reads as empty.
    pub fn matches_with(&self, get: impl Fn(&str) -> Option<String>) -> bool {
        self.terms
            .iter()
            .all(|(path, equal, value)| (get(path).unwrap_or_default() == *value) == *equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (path, equal, value)) in self.terms.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if *equal { "=" } else { "!=" };
            let value = value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            write!(f, "{comma}{path}{operator}{value}")?;
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut terms = Vec::new();
        for term in split_unescaped(text) {
            if term.trim().is_empty() {
                continue;
            }
            let (path, equal, value) = term
                .split_once("!=")
                .map(|(path, value)| (path, false, value))
                .or_else(|| {
                    term.split_once("==")
                        .map(|(path, value)| (path, true, value))
                })
                .or_else(|| {
                    term.split_once('=')
                        .map(|(path, value)| (path, true, value))
                })
                .ok_or_else(|| SelectorError {
                    selector: text.to_owned(),
                    problem: format!("{term:?} has no operator: use =, == or !="),
                })?;
            terms.push((path.trim().to_owned(), equal, unescape(value.trim())));
        }
        Ok(Self { terms })
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        if c == ',' && !escaped {
            parts.push(&text[start..i]);
            start = i + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(text: &str) -> String {
    let (mut out, mut escaped) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            out.push(c);
            escaped = false;
        }
    }
    out
}
