//! First lines of log files, which a stream across rotations must deliver.
//!
//! After a kubelet has sent a log file, it continues with the file that is current then. If a
//! reader is so slow that the log was rotated twice meanwhile, the kubelet silently skips the file
//! in between. Therefore, a slow reader occasionally queries the first line of the current file: if
//! the stream reaches later lines without delivering that line, lines are missing. A file may begin
//! within a line, whose halves the stream delivers as one line. Therefore the second line of the
//! file also counts.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The maximum number of expected first lines, each of a different file.
const EXPECTED: usize = 64;
/// The maximum difference by which timestamps may go back in a log.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// First lines that the stream has not delivered yet.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The expected lines, the oldest first.
    expected: VecDeque<Head>,
    /// The position where the stream passed the oldest expected line: the times of the last line
    /// before it and of the first line after it. If the expected line does not follow, lines
    /// between these two are missing.
    passed: Option<(Timestamp, Timestamp)>,
}

/// The beginning of a file.
#[derive(Debug)]
struct Head {
    time: Timestamp,
    /// The beginnings of its first lines.
    lines: Vec<(Timestamp, String)>,
}

impl Heads {
    /// Expects the first or second line of a file, whose beginnings are given. `read` is the time
    /// of the last line read. Lines that are not later have been read or are being read.
    pub(super) fn expect(&mut self, lines: Vec<(Timestamp, String)>, read: Option<Timestamp>) {
        let Some(&(time, _)) = lines.first() else {
            return;
        };
        let newest = self.expected.back().map(|head| head.time).max(read);
        if newest.is_none_or(|newest| time > newest) && self.expected.len() < EXPECTED {
            self.expected.push_back(Head { time, lines });
        }
    }

    /// Processes a line. Returns the times between which lines are missing, if any. `read` is
    /// the time of the previous line.
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
        // The line is the first line of a later file, or is later than the oldest expected line.
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

    /// Clears the state for a new stream.
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
    fn a_file_that_begins_within_a_line_is_recognized_by_its_second_line() {
        let mut heads = Heads::default();
        let lines = [line(at(20), "half"), line(at(25), "whole")].concat();
        heads.expect(lines, Some(at(5)));
        assert_eq!(heads.skipped(at(19), "first half", Some(at(18))), None);
        assert_eq!(heads.skipped(at(25), "whole", Some(at(19))), None);
        assert_eq!(heads.skipped(at(90), "line", Some(at(25))), None);
    }

    #[test]
    fn a_skipped_file_is_detected_by_its_first_line() {
        let mut heads = Heads::default();
        // The file that is being read, and a file that was read.
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
    fn consecutive_files_have_no_gap() {
        let mut heads = Heads::default();
        heads.expect(line(at(20), "second fi"), Some(at(5)));
        // Times may go back a little if two streams are written into one log.
        assert_eq!(heads.skipped(at(21), "line", Some(at(19))), None);
        assert_eq!(heads.skipped(at(20), "another", Some(at(21))), None);
        assert_eq!(heads.skipped(at(20), "second file", Some(at(20))), None);
        assert_eq!(heads.skipped(at(90), "line", Some(at(20))), None);
    }

    #[test]
    fn a_skipped_short_file_is_detected_at_once() {
        let mut heads = Heads::default();
        let soon = |milliseconds| at(20) + SignedDuration::from_millis(milliseconds);
        heads.expect(line(at(20), "second file"), Some(at(5)));
        heads.expect(line(soon(300), "third file"), Some(at(6)));
        let gap = heads.skipped(soon(300), "third file", Some(at(19)));
        assert_eq!(gap, Some((at(19), soon(300))));
    }

    #[test]
    fn a_gap_that_is_detected_late_has_its_position() {
        let mut heads = Heads::default();
        let soon = |milliseconds| at(20) + SignedDuration::from_millis(milliseconds);
        heads.expect(line(at(20), "second file"), Some(at(5)));
        assert_eq!(heads.skipped(soon(300), "third file", Some(at(19))), None);
        assert_eq!(heads.skipped(soon(900), "line", Some(soon(300))), None);
        let gap = heads.skipped(soon(1500), "line", Some(soon(900)));
        assert_eq!(gap, Some((at(19), soon(300))));
    }
}
