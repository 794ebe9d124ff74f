//! The results of tests, parsed from their output and their notes.

use std::collections::{BTreeMap, BTreeSet};

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Passed,
    Failed,
    Ignored,
}

/// A note that a test wrote about the server under test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Note {
    /// The server does not support the feature that the test is about.
    Unsupported(String),
    /// The server differs in a part of the test.
    Differs(String),
}

/// The results of one run, by test name.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) statuses: BTreeMap<String, Status>,
    pub(super) notes: BTreeMap<String, BTreeSet<Note>>,
}

impl Results {
    /// Reads a line of the test harness, as `test rule_01::rule_01_x ... ok`.
    pub(crate) fn read_line(&mut self, line: &str) {
        let Some((name, status)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        else {
            return;
        };
        let status = match status.split([',', ' ']).next() {
            Some("ok") => Status::Passed,
            Some("ignored") => Status::Ignored,
            _ => Status::Failed,
        };
        self.statuses.insert(last_segment(name).to_owned(), status);
    }

    /// Reads a line of the notes: test, kind and text, separated by tabs.
    pub(super) fn read_note(&mut self, line: &str) {
        let mut parts = line.splitn(3, '\t');
        let (Some(test), Some(kind), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let note = match kind {
            "lacks" => Note::Unsupported(text.to_owned()),
            _ => Note::Differs(text.to_owned()),
        };
        self.notes
            .entry(last_segment(test).to_owned())
            .or_default()
            .insert(note);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.statuses.is_empty()
    }

    pub(crate) fn failed(&self) -> usize {
        self.statuses
            .values()
            .filter(|status| **status == Status::Failed)
            .count()
    }

    /// The names of the failed tests.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &str> {
        let failed = self
            .statuses
            .iter()
            .filter(|(_, status)| **status == Status::Failed);
        failed.map(|(test, _)| test.as_str())
    }

    /// Returns true if the server does not support the feature that the test is about.
    pub(super) fn is_unsupported(&self, test: &str) -> bool {
        let notes = self.notes.get(test).into_iter().flatten();
        notes
            .into_iter()
            .any(|note| matches!(note, Note::Unsupported(_)))
    }

    /// The number of tests per result, as text.
    pub(crate) fn summary(&self) -> String {
        self.summary_of(self.statuses.keys().map(String::as_str))
    }

    /// The number of tests per result, for some tests.
    pub(super) fn summary_of<'a>(&self, tests: impl Iterator<Item = &'a str>) -> String {
        let (mut passed, mut failed, mut ignored, mut unsupported) = (0, 0, 0, 0);
        for test in tests {
            match self.statuses.get(test) {
                Some(Status::Passed) if self.is_unsupported(test) => unsupported += 1,
                Some(Status::Passed) => passed += 1,
                Some(Status::Failed) => failed += 1,
                Some(Status::Ignored) | None => ignored += 1,
            }
        }
        let counts = [
            (passed, "pass"),
            (unsupported, "not supported"),
            (failed, "**fail**"),
            (ignored, "not run"),
        ];
        let parts = counts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        parts.join(", ")
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_notes_are_parsed() {
        let mut results = Results::default();
        for line in [
            "running 4 tests",
            "test rule_01::rule_01_a ... ok",
            "test rule_01::rule_01_b ... FAILED",
            "test rule_02::rule_02_a ... ignored, why",
            "test rule_02::rule_02_b ... ok",
        ] {
            results.read_line(line);
        }
        results.read_note("rule_02::rule_02_b\tlacks\tof 1.27");
        results.read_note("rule_01::rule_01_a\tnewer\tof 1.21");
        assert_eq!(
            results.summary(),
            "1 pass, 1 not supported, 1 **fail**, 1 not run"
        );
        assert_eq!(results.failed(), 1);
        assert!(results.is_unsupported("rule_02_b") && !results.is_unsupported("rule_01_a"));
    }
}
