//! First lines of a log's files, which a stream through rotation must bring.
//!
//! A kubelet that sends a log goes on with the file that is current when it has sent
//! the previous one. When a reader is so slow that two files were begun meanwhile, the
//! one between them is skipped, and the stream does not say so. So a slow reader asks
//! now and then for the first line of the current file: when the stream comes to later
//! lines without having brought that one, lines are missing.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// How many first lines are waited for. Each is of a file of its own.
const EXPECTED: usize = 64;
/// How far times may go back within a log.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// First lines that the stream has not brought yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Heads(VecDeque<(Timestamp, String)>);

impl Heads {
    /// Expects a line, of which the beginning is known. `read` is the time of the last
    /// line that was read: what is not later has been read, or is being read.
    pub(super) fn expect(&mut self, time: Timestamp, text: &str, read: Option<Timestamp>) {
        let newest = self.0.back().map(|(time, _)| *time).max(read);
        if newest.is_none_or(|newest| time > newest) && self.0.len() < EXPECTED {
            self.0.push_back((time, text.to_owned()));
        }
    }

    /// Whether lines before this one are missing.
    pub(super) fn skipped(&mut self, time: Timestamp, text: &str) -> bool {
        let mut skipped = false;
        while let Some((expected, begin)) = self.0.front() {
            if *expected == time && text.starts_with(begin) {
                self.0.pop_front();
                break;
            }
            if time.duration_since(*expected) <= MARGIN {
                break;
            }
            skipped = true;
            self.0.pop_front();
        }
        skipped
    }

    /// Forgets all: another stream begins.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    #[test]
    fn a_file_that_was_skipped_is_known_by_its_first_line() {
        let mut heads = Heads::default();
        // The file that is read, and one that was read.
        heads.expect(at(5), "old", Some(at(5)));
        heads.expect(at(20), "second fi", Some(at(5)));
        heads.expect(at(20), "second fi", Some(at(6)));
        heads.expect(at(40), "third file", Some(at(6)));
        assert!(!heads.skipped(at(7), "line"));
        assert!(heads.skipped(at(40), "third file"));
        assert!(!heads.skipped(at(80), "line"));
    }

    #[test]
    fn files_that_follow_each_other_have_no_gap() {
        let mut heads = Heads::default();
        heads.expect(at(20), "second fi", Some(at(5)));
        // Times go back a little where two streams are written into one log.
        assert!(!heads.skipped(at(21), "line"));
        assert!(!heads.skipped(at(20), "another"));
        assert!(!heads.skipped(at(20), "second file"));
        assert!(!heads.skipped(at(90), "line"));
    }
}
