//! Why tests fail, as far as it is known: what the embedded cluster does not do.

use std::fs;

use crate::run::{Outcome, root};

/// A cause is a line, and below it, indented, parts of the names of tests.
pub(super) const FILE: &str = "xtask/kubernetes/e2e/causes.txt";

/// The causes in their order, each with the parts of names.
pub(super) struct Causes(Vec<(String, Vec<String>)>);

impl Causes {
    pub(super) fn read() -> Outcome<Self> {
        let text = fs::read_to_string(root().join(FILE));
        Self::parse(&text.map_err(|error| format!("{FILE}: {error}"))?)
    }

    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let mut causes: Vec<(String, Vec<String>)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match (line.strip_prefix("  "), causes.last_mut()) {
                (None, _) => causes.push((line.to_owned(), Vec::new())),
                (Some(part), Some((_, parts))) => parts.push(part.to_owned()),
                (Some(_), None) => return Err(format!("{FILE}: the first line is indented")),
            }
        }
        Ok(Self(causes))
    }

    /// The first cause that names a part of the test's name.
    pub(super) fn of(&self, test: &str) -> Option<&str> {
        let found = |parts: &[String]| parts.iter().any(|part| test.contains(part));
        let (cause, _) = self.0.iter().find(|(_, parts)| found(parts))?;
        Some(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_counts() {
        let causes = Causes::parse("no webhooks\n  Webhook\n\nno policies\n  Policy\n  hook\n");
        let Ok(causes) = causes else {
            panic!("it can be read")
        };
        assert_eq!(causes.of("[sig-a] Webhook works"), Some("no webhooks"));
        assert_eq!(causes.of("[sig-a] a hook"), Some("no policies"));
        assert_eq!(causes.of("[sig-a] Pods"), None);
        assert!(Causes::parse("  indented").is_err());
    }

    #[test]
    fn the_file_can_be_read() {
        assert!(Causes::read().is_ok());
    }
}
