//! What tests printed and remarked, as values.

use std::collections::{BTreeMap, BTreeSet};

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    Failed,
    Ignored,
}

/// What a test remarked about the server it judged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Note {
    /// The server lacks what the whole test is about.
    Lacks(String),
    /// It lacks, or does otherwise, a part of it.
    Part(String),
}

/// The tests of one run, by their names.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) ends: BTreeMap<String, End>,
    pub(super) notes: BTreeMap<String, BTreeSet<Note>>,
}

impl Results {
    /// A line that the test harness printed: `test rule_01::rule_01_x ... ok`.
    pub(super) fn read_line(&mut self, line: &str) {
        let Some((name, end)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        else {
            return;
        };
        let end = match end.split([',', ' ']).next() {
            Some("ok") => End::Passed,
            Some("ignored") => End::Ignored,
            _ => End::Failed,
        };
        self.ends.insert(last(name).to_owned(), end);
    }

    /// A line of the notes: test, kind, text, with tabs between them.
    pub(super) fn read_note(&mut self, line: &str) {
        let mut parts = line.splitn(3, '\t');
        let (Some(test), Some(kind), Some(text)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let note = match kind {
            "lacks" => Note::Lacks(text.to_owned()),
            _ => Note::Part(text.to_owned()),
        };
        self.notes
            .entry(last(test).to_owned())
            .or_default()
            .insert(note);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn failed(&self) -> usize {
        self.ends
            .values()
            .filter(|end| **end == End::Failed)
            .count()
    }

    /// Whether the server lacks what the test is about.
    pub(super) fn lacks(&self, test: &str) -> bool {
        let notes = self.notes.get(test).into_iter().flatten();
        notes.into_iter().any(|note| matches!(note, Note::Lacks(_)))
    }

    /// The counts, for a person.
    pub(super) fn summary(&self) -> String {
        self.summary_of(self.ends.keys().map(String::as_str))
    }

    /// The counts of some tests.
    pub(super) fn summary_of<'a>(&self, tests: impl Iterator<Item = &'a str>) -> String {
        let (mut passed, mut failed, mut ignored, mut lacking) = (0, 0, 0, 0);
        for test in tests {
            match self.ends.get(test) {
                Some(End::Passed) if self.lacks(test) => lacking += 1,
                Some(End::Passed) => passed += 1,
                Some(End::Failed) => failed += 1,
                Some(End::Ignored) | None => ignored += 1,
            }
        }
        let counts = [
            (passed, "pass"),
            (lacking, "not supported"),
            (failed, "**fail**"),
            (ignored, "not run"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        told.join(", ")
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_printed() {
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
        assert!(results.lacks("rule_02_b") && !results.lacks("rule_01_a"));
    }
}
