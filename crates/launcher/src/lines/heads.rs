//! First lines of a log's files, which a stream through rotation must bring.
//!
//! A kubelet that sends a log goes on with the file that is current when it has sent
//! the previous one. When a reader is so slow that two files were begun meanwhile, the
//! one between them is skipped, and the stream does not say so. So a slow reader asks
//! now and then for the first line of the current file: when the stream comes to later
//! lines without having brought that one, lines are missing. A node may begin a file
//! within a line, of which the stream brings both halves as one line: so the second line
//! of the file is as good as the first.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// How many first lines are waited for. Each is of a file of its own.
const EXPECTED: usize = 64;
/// How far times may go back within a log.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// First lines that the stream has not brought yet.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The oldest first.
    expected: VecDeque<Head>,
    /// Where the stream came to lines later than the oldest: the last line before, and the
    /// first of them. If that first line does not come any more, lines between these two
    /// are missing.
    passed: Option<(Timestamp, Timestamp)>,
}

/// The beginning of a file.
#[derive(Debug)]
struct Head {
    time: Timestamp,
    /// Its first lines, of each at least the beginning.
    lines: Vec<(Timestamp, String)>,
}

impl Heads {
    /// Expects the first or the second line of a file, of which the beginnings are known.
    /// `read` is the time of the last line that was read: what is not later has been read,
    /// or is being read.
    pub(super) fn expect(&mut self, lines: Vec<(Timestamp, String)>, read: Option<Timestamp>) {
        let Some(&(time, _)) = lines.first() else {
            return;
        };
        let newest = self.expected.back().map(|head| head.time).max(read);
        if newest.is_none_or(|newest| time > newest) && self.expected.len() < EXPECTED {
            self.expected.push_back(Head { time, lines });
        }
    }

    /// Takes a line; gives the times between which lines are missing, if they are.
    /// `read` is the time of the line before.
    pub(super) fn skipped(
        &mut self,
        time: Timestamp,
        text: &str,
        read: Option<Timestamp>,
    ) -> Option<(Timestamp, Timestamp)> {
        let oldest = self.expected.front()?.time;
        let is_late = |expected: Timestamp| time.duration_since(expected) > MARGIN;
        let is_head = |head: &Head| {
            let mut lines = head.lines.iter();
            lines.any(|(expected, begin)| *expected == time && text.starts_with(begin))
        };
        let place = self.expected.iter().position(is_head);
        if place == Some(0) {
            self.expected.pop_front();
            self.passed = None;
            return None;
        }
        if time > oldest && self.passed.is_none() {
            self.passed = Some((read.unwrap_or(oldest), time));
        }
        // The first line of a later file, or a line that is too late for the oldest.
        if place.is_none() && !is_late(oldest) {
            return None;
        }
        match place {
            Some(place) => drop(self.expected.drain(..=place)),
            None => {
                while self.expected.front().is_some_and(|head| is_late(head.time)) {
                    self.expected.pop_front();
                }
            }
        }
        self.passed.take()
    }

    /// Forgets all: another stream begins.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn line(time: Timestamp, text: &str) -> Vec<(Timestamp, String)> {
        vec![(time, text.to_owned())]
    }

    #[test]
    fn a_file_that_begins_within_a_line_is_known_by_its_second_line() {
        let mut heads = Heads::default();
        let lines = [line(at(20), "half"), line(at(25), "whole")].concat();
        heads.expect(lines, Some(at(5)));
        assert_eq!(heads.skipped(at(19), "first half", Some(at(18))), None);
        assert_eq!(heads.skipped(at(25), "whole", Some(at(19))), None);
        assert_eq!(heads.skipped(at(90), "line", Some(at(25))), None);
    }

    #[test]
    fn a_file_that_was_skipped_is_known_by_its_first_line() {
        let mut heads = Heads::default();
        // The file that is read, and one that was read.
        heads.expect(line(at(5), "old"), Some(at(5)));
        heads.expect(line(at(20), "second fi"), Some(at(5)));
        heads.expect(line(at(20), "second fi"), Some(at(6)));
        heads.expect(line(at(40), "third file"), Some(at(6)));
        assert_eq!(heads.skipped(at(7), "line", Some(at(6))), None);
        let gap = heads.skipped(at(40), "third file", Some(at(7)));
        assert_eq!(gap, Some((at(7), at(40))));
        assert_eq!(heads.skipped(at(80), "line", Some(at(40))), None);
    }

    #[test]
    fn files_that_follow_each_other_have_no_gap() {
        let mut heads = Heads::default();
        heads.expect(line(at(20), "second fi"), Some(at(5)));
        // Times go back a little where two streams are written into one log.
        assert_eq!(heads.skipped(at(21), "line", Some(at(19))), None);
        assert_eq!(heads.skipped(at(20), "another", Some(at(21))), None);
        assert_eq!(heads.skipped(at(20), "second file", Some(at(20))), None);
        assert_eq!(heads.skipped(at(90), "line", Some(at(20))), None);
    }

    #[test]
    fn a_file_that_was_short_lived_is_missed_at_once() {
        let mut heads = Heads::default();
        let soon = |milliseconds| at(20) + SignedDuration::from_millis(milliseconds);
        heads.expect(line(at(20), "second file"), Some(at(5)));
        heads.expect(line(soon(300), "third file"), Some(at(6)));
        let gap = heads.skipped(soon(300), "third file", Some(at(19)));
        assert_eq!(gap, Some((at(19), soon(300))));
    }

    #[test]
    fn what_is_noticed_late_is_reported_with_its_place() {
        let mut heads = Heads::default();
        let soon = |milliseconds| at(20) + SignedDuration::from_millis(milliseconds);
        heads.expect(line(at(20), "second file"), Some(at(5)));
        assert_eq!(heads.skipped(soon(300), "third file", Some(at(19))), None);
        assert_eq!(heads.skipped(soon(900), "line", Some(soon(300))), None);
        let gap = heads.skipped(soon(1500), "line", Some(soon(900)));
        assert_eq!(gap, Some((at(19), soon(300))));
    }
}
