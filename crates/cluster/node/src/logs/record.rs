//! A record of a log file: `2026-01-02T03:04:05.678901234Z stdout F text`, the
//! format of container runtimes. `P` marks a line that continues in the next
//! record.

use jiff::Timestamp;

use crate::sandbox::Stream;

/// Maximum length of a record's text; longer lines are split.
pub(super) const MAX_RECORD_TEXT: usize = 16 * 1024;

/// A single record, borrowed from its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// The time when the text was read from the pipe, as in the file.
    pub(super) time: &'a str,
    /// True if the line ends with this record.
    pub(super) full: bool,
    /// The text without its newline.
    pub(super) text: &'a [u8],
}

/// Formats a record's time.
pub(super) fn stamp(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Appends a record; `time` comes from [`stamp`].
pub(super) fn write(out: &mut Vec<u8>, time: &str, stream: Stream, full: bool, text: &[u8]) {
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(match stream {
        Stream::Output => b" stdout ",
        Stream::Errors => b" stderr ",
    });
    out.extend_from_slice(if full { b"F " } else { b"P " });
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Parses a line without its newline; `None` if it is not a record.
pub(super) fn parse(line: &[u8]) -> Option<Record<'_>> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let time = std::str::from_utf8(parts.next()?).ok()?;
    if !matches!(parts.next()?, b"stdout" | b"stderr") {
        return None;
    }
    let full = match parts.next()? {
        b"F" => true,
        b"P" => false,
        _ => return None,
    };
    Some(Record {
        time,
        full,
        text: parts.next()?,
    })
}

/// Returns true if the last of these records leaves its line unfinished.
pub(super) fn is_open(records: &[u8]) -> bool {
    let records = records.strip_suffix(b"\n").unwrap_or(records);
    let begin = memchr::memrchr(b'\n', records).map_or(0, |at| at + 1);
    parse(&records[begin..]).is_some_and(|record| !record.full)
}

/// Filters records for a reader, one at a time.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    since: Option<(Timestamp, String)>,
    timestamps: bool,
    left: Option<u64>,
    line_goes_on: bool,
    /// True if the current line is included, which depends on the time of its first record.
    wanted: bool,
}

impl Filter {
    pub(super) fn new(since: Option<Timestamp>, timestamps: bool, limit: Option<u64>) -> Self {
        Self {
            since: since.map(|since| (since, stamp(since))),
            timestamps,
            left: limit,
            line_goes_on: false,
            wanted: true,
        }
    }

    /// Returns true if the byte limit is reached.
    pub(super) fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Appends the reader's view of `record`.
    pub(super) fn pass(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let begins = !self.line_goes_on;
        self.line_goes_on = !record.full;
        if begins && let Some((since, written)) = &self.since {
            // Times of equal length sort like their text.
            self.wanted = match record.time.len() == written.len() {
                true => record.time >= written.as_str(),
                false => !record
                    .time
                    .parse::<Timestamp>()
                    .is_ok_and(|time| time < *since),
            };
        }
        if !self.wanted {
            return;
        }
        let before = out.len();
        if self.timestamps && begins {
            out.extend_from_slice(record.time.as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(record.text);
        if record.full {
            out.push(b'\n');
        }
        if let Some(left) = &mut self.left {
            let added = ((out.len() - before) as u64).min(*left);
            out.truncate(before + added as usize);
            *left -= added;
        }
    }
}

/// Counts the lines that end in `records`, which ends with a newline.
pub(super) fn lines(records: &[u8]) -> u64 {
    let records = records.split_inclusive(|byte| *byte == b'\n');
    let ended = records.filter(|line| !is_open(line));
    ended.count() as u64
}

/// Returns the start of the last `count` lines in `records`, which ends with a newline.
pub(super) fn tail_start(records: &[u8], count: u64) -> usize {
    if count == 0 {
        return records.len();
    }
    let mut lines = 0;
    let mut end = records.len();
    let mut start = end;
    while end > 0 {
        let begin = records[..end - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let line = &records[begin..end - 1];
        // A partial record belongs to the line that ends after it.
        let ends_a_line = parse(line).is_none_or(|record| record.full);
        if ends_a_line || end == records.len() {
            if lines == count {
                return start;
            }
            lines += 1;
        }
        start = begin;
        end = begin;
    }
    start
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn at(nanosecond: i128) -> Timestamp {
        Timestamp::from_nanosecond(1_767_323_045_678_901_234 + nanosecond).unwrap()
    }

    #[test]
    fn the_format_is_that_of_container_runtimes() {
        let mut out = Vec::new();
        write(
            &mut out,
            &stamp(at(0)),
            Stream::Output,
            true,
            b"hello  world",
        );
        write(&mut out, &stamp(at(0)), Stream::Errors, false, b"");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2026-01-02T03:04:05.678901234Z stdout F hello  world\n\
             2026-01-02T03:04:05.678901234Z stderr P \n"
        );
    }

    fn read(records: &[u8], mut filter: Filter) -> Vec<u8> {
        let mut out = Vec::new();
        for line in records.split_inclusive(|byte| *byte == b'\n') {
            filter.pass(&parse(&line[..line.len() - 1]).unwrap(), &mut out);
        }
        out
    }

    fn sample() -> Vec<u8> {
        let mut records = Vec::new();
        write(&mut records, &stamp(at(0)), Stream::Output, true, b"one");
        write(&mut records, &stamp(at(1)), Stream::Errors, false, b"tw");
        write(&mut records, &stamp(at(2)), Stream::Errors, true, b"o");
        write(&mut records, &stamp(at(3)), Stream::Output, true, b"three");
        records
    }

    #[test]
    fn filters() {
        let all = sample();
        assert_eq!(
            read(&all, Filter::new(None, false, None)),
            b"one\ntwo\nthree\n"
        );
        assert_eq!(
            read(&all, Filter::new(Some(at(3)), false, None)),
            b"three\n"
        );
        // The rest of an earlier line does not count as a line.
        assert_eq!(
            read(&all, Filter::new(Some(at(2)), false, None)),
            b"three\n"
        );
        assert_eq!(read(&all, Filter::new(None, false, Some(5))), b"one\nt");
        let timed = String::from_utf8(read(&all, Filter::new(None, true, None))).unwrap();
        assert_eq!(
            timed.lines().nth(1).unwrap(),
            "2026-01-02T03:04:05.678901235Z two"
        );
    }

    #[test]
    fn tails() {
        let all = sample();
        let tail = |count| {
            read(
                &all[tail_start(&all, count)..],
                Filter::new(None, false, None),
            )
        };
        assert_eq!(tail(0), b"");
        assert_eq!(tail(1), b"three\n");
        assert_eq!(tail(2), b"two\nthree\n");
        assert_eq!(tail(3), b"one\ntwo\nthree\n");
        assert_eq!(tail(9), b"one\ntwo\nthree\n");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            text in proptest::collection::vec(any::<u8>().prop_filter("newline", |b| *b != b'\n'), 0..50),
            full: bool,
            nanosecond in 0..1_000_000_000i128,
        ) {
            let mut out = Vec::new();
            write(&mut out, &stamp(at(nanosecond)), Stream::Errors, full, &text);
            let record = parse(&out[..out.len() - 1]).unwrap();
            prop_assert_eq!(record.text, &text[..]);
            prop_assert_eq!(record.full, full);
            prop_assert_eq!(record.time.parse::<Timestamp>().unwrap(), at(nanosecond));
        }

        #[test]
        fn arbitrary_lines_do_not_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&line);
            let _ = tail_start(&line, 3);
        }

        #[test]
        fn a_tail_is_the_last_lines(lines in proptest::collection::vec("[a-z ]{0,6}", 0..20), count in 0..25u64) {
            let mut records = Vec::new();
            for line in &lines {
                write(&mut records, &stamp(at(0)), Stream::Output, true, line.as_bytes());
            }
            let kept = lines.len().saturating_sub(count as usize);
            let expected: String = lines[kept..].iter().map(|line| format!("{line}\n")).collect();
            let start = tail_start(&records, count);
            prop_assert_eq!(read(&records[start..], Filter::new(None, false, None)), expected.into_bytes());
        }
    }
}
