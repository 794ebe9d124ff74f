//! Parses and formats messages.

/// A cause with the cluster's message.
pub(super) fn with_message(text: impl Into<String>, message: &str) -> String {
    let (text, message) = (text.into(), message.trim());
    if message.is_empty() {
        text
    } else {
        format!("{text}: {message}")
    }
}

pub(super) fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// The text between the first occurrences of two words.
pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

/// Returns true if the text contains any of the words, ignoring case.
pub(super) fn has_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// The last non-empty line.
pub(super) fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// The first part of a long message.
pub(super) fn short(text: &str) -> String {
    cut(text, 400)
}

/// The first characters of a message, as many as the limit allows.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let begin: String = text.chars().take(limit).collect();
    format!("{begin}…")
}
