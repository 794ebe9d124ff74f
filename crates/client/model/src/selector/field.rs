//! Field selectors: `status.phase!=Running,metadata.name=a`.

use std::{fmt, str::FromStr};

use super::SelectorError;

/// A field selector: dotted paths whose values must or must not be equal to a
/// given value.
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
    /// Creates a selector that matches everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Returns true if the selector has no terms.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds a term: the field at `path` equals `value`.
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

    /// The paths in the terms.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(path, ..)| path.as_str())
    }

    /// The terms on paths that `is_kept` accepts.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&str) -> bool) -> Self {
        let kept = self.terms.iter().filter(|(path, ..)| is_kept(path));
        Self {
            terms: kept.cloned().collect(),
        }
    }

    /// The value that `path` must have, if a term requires one.
    #[must_use]
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|(p, equal, _)| *equal && p == path)
            .map(|(.., v)| v.as_str())
    }

    /// Returns true if all terms match. `get` returns the value of a field; `None` counts as empty.
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
        let error = |opening: String, problem: String| SelectorError {
            selector: text.to_owned(),
            opening,
            problem,
        };
        let mut terms = Vec::new();
        for term in split_unescaped(text)
            .into_iter()
            .filter(|term| !term.is_empty())
        {
            let (path, equal, value) = split_at_operator(term).ok_or_else(|| {
                let opening = format!("invalid selector: '{text}'; ");
                error(opening, format!("can't understand '{term}'"))
            })?;
            let value = unescape(value)
                .map_err(|problem| error("invalid field selector: ".to_owned(), problem))?;
            terms.push((path.to_owned(), equal, value));
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

/// Splits a term into its path, whether the values must be equal, and the value
/// as written. The first operator counts.
fn split_at_operator(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=')?;
    let (path, rest) = (&term[..at], &term[at + 1..]);
    Some(match path.strip_suffix('!') {
        Some(path) => (path, false, rest),
        None => (path, true, rest.strip_prefix('=').unwrap_or(rest)),
    })
}

/// Unescapes a value, or returns what is wrong with it.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        out.push(match c {
            '\\' => match rest.next() {
                Some(c @ ('\\' | ',' | '=')) => c,
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                return Err(format!("unescaped character in value: {}", u32::from(c)));
            }
            c => c,
        });
    }
    Ok(out)
}
