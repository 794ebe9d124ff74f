//! The known causes of failed tests: features that the embedded cluster does not implement.

use std::fs;

use crate::run::{Outcome, root};

/// Each cause is a line. The indented lines below it are parts of test names.
pub(super) const FILE: &str = "xtask/kubernetes/e2e/causes.txt";

/// The causes in the order of the file, each with parts of test names.
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

    /// The first cause with a part of this test name.
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
    fn the_first_matching_cause_is_returned() {
        let causes = Causes::parse("no webhooks\n  Webhook\n\nno policies\n  Policy\n  hook\n");
        let Ok(causes) = causes else {
            panic!("cannot parse the causes")
        };
        assert_eq!(causes.of("[sig-a] Webhook works"), Some("no webhooks"));
        assert_eq!(causes.of("[sig-a] a hook"), Some("no policies"));
        assert_eq!(causes.of("[sig-a] Pods"), None);
        assert!(Causes::parse("  indented").is_err());
    }

    #[test]
    fn the_file_of_causes_is_valid() {
        assert!(Causes::read().is_ok());
    }
}
