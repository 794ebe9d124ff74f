//! Tests of splitting logs into lines, and of recognizing repeated lines.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const A: &str = "2026-01-01T00:00:01.5Z";
const B: &str = "2026-01-01T00:00:02.000000001Z";

/// The texts of lines. A gap is `<gap>`.
fn texts(found: Vec<Found>) -> Vec<String> {
    let text = |found| match found {
        Found::Line { text, .. } => text,
        Found::Gap { .. } => "<gap>".to_owned(),
    };
    found.into_iter().map(text).collect()
}

#[test]
fn lines_are_complete_and_without_their_time() {
    let mut lines = Lines::default();
    assert_eq!(texts(lines.push(format!("{A} he").as_bytes())), [""; 0]);
    assert_eq!(lines.unfinished(), b"he");
    assert_eq!(
        texts(lines.push(format!("llo\n{A} \n{B} wor").as_bytes())),
        ["hello", ""]
    );
    assert_eq!(texts(lines.push(b"ld")), [""; 0]);
    assert_eq!(
        lines.finish(),
        [Found::line(B.parse().ok(), "world".to_owned())]
    );
    assert_eq!(texts(lines.finish()), [""; 0]);
}

#[test]
fn invalid_utf8_and_lines_without_time_are_delivered() {
    let mut lines = Lines::default();
    assert_eq!(texts(lines.push(b"plain\n\xff\n")), ["plain", "\u{fffd}"]);
}

#[test]
fn a_very_long_line_is_split_and_delivered_once() {
    let long = format!("{}y", "é".repeat(LONGEST * 3 / 2));
    let log = format!("{A} {long}\n{B} next\n");
    for (first, piece) in [
        (0, 7000),
        (LONGEST + 100, 65_536),
        (LONGEST * 5 / 2, 1 << 20),
    ] {
        let mut lines = Lines::default();
        let mut got = texts(lines.push(&log.as_bytes()[..first]));
        lines.resume();
        for bytes in log.as_bytes().chunks(piece) {
            got.extend(texts(lines.push(bytes)));
        }
        assert_eq!(got.pop().unwrap(), "next");
        assert!(got.iter().all(|part| part.len() <= LONGEST));
        assert!(got.concat() == long, "broken after {first}");
    }
}

/// A server's log, of which lines may have been rotated away.
fn sent(log: &[(Timestamp, String)], since: Option<Timestamp>) -> String {
    // Servers support only whole seconds.
    let is_wanted =
        |time: &Timestamp| since.is_none_or(|since| time.as_second() >= since.as_second());
    let wanted = log.iter().filter(|(time, _)| is_wanted(time));
    wanted
        .map(|(time, text)| format!("{time} {text}\n"))
        .collect()
}

#[test]
fn lines_of_equal_time_are_recognized_after_a_rotation() {
    let time: Timestamp = A.parse().unwrap();
    let log: Vec<_> = (0..6).map(|n| (time, n.to_string())).collect();
    let mut lines = Lines::default();
    let mut got = texts(lines.push(sent(&log[..4], None).as_bytes()));
    let since = lines.resume();
    got.extend(texts(lines.push(sent(&log[3..], since).as_bytes())));
    assert_eq!(got, ["0", "1", "2", "3", "4", "5"]);
}

#[test]
fn rereading_a_tail_does_not_deliver_earlier_lines() {
    let time: Timestamp = A.parse().unwrap();
    let log: Vec<_> = (0..6).map(|n| (time, n.to_string())).collect();
    let mut lines = Lines::of_tail();
    let mut got = texts(lines.push(sent(&log[3..5], None).as_bytes()));
    let since = lines.resume();
    got.extend(texts(lines.push(sent(&log, since).as_bytes())));
    assert_eq!(got, ["3", "4", "5"]);
}

#[test]
fn the_rest_of_a_long_line_is_not_a_line() {
    // A kubelet splits a long line and filters its parts separately.
    let mut lines = Lines::default();
    let log = format!("2026-01-01T00:00:00.9Z long\n{B} next\n");
    assert_eq!(texts(lines.push(log.as_bytes())), ["long", "next"]);
    lines.resume();
    let again = format!("{A} ng\n{B} next\n{B} last\n");
    assert_eq!(texts(lines.push(again.as_bytes())), ["last"]);
}

#[test]
fn more_lines_per_second_than_remembered_are_recognized() {
    let base: Timestamp = A.parse().unwrap();
    for step in [0, 3_000] {
        let at = |n: i64| base + jiff::SignedDuration::from_nanos(n / 3 * step);
        let log: Vec<_> = (0..20_000).map(|n| (at(n), n.to_string())).collect();
        let mut lines = Lines::default();
        let mut got = texts(lines.push(sent(&log[..15_000], None).as_bytes()));
        let since = lines.resume();
        got.extend(texts(lines.push(sent(&log[..17_000], since).as_bytes())));
        let since = lines.resume();
        got.extend(texts(lines.push(sent(&log, since).as_bytes())));
        assert!(got.iter().eq(log.iter().map(|(_, text)| text)));
        assert!(lines.recent.len() <= 5_000);
    }
}

#[test]
fn lines_rotated_away_while_disconnected_leave_a_gap() {
    let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
    let log: Vec<_> = (0..100).map(|n| (at(n), n.to_string())).collect();
    let mut lines = Lines::default();
    lines.push(sent(&log[..10], None).as_bytes());
    let since = lines.resume();
    let again = lines.push(sent(&log[50..60], since).as_bytes());
    let (from, to) = (at(9), Some(at(50)));
    assert_eq!(again[0], Found::Gap { from, to });
    assert_eq!(again.len(), 11);
    // The gap is not reported again on the same connection, or on one that starts with known
    // lines.
    assert_eq!(
        texts(lines.push(sent(&log[60..61], None).as_bytes())),
        ["60"]
    );
    let since = lines.resume();
    let again = lines.push(sent(&log[60..62], since).as_bytes());
    assert_eq!(texts(again), ["61"]);
    // At the end of the log, the buffer is empty.
    lines.resume();
    let (from, to) = (at(61), None);
    assert_eq!(lines.finish(), [Found::Gap { from, to }]);
    assert_eq!(lines.finish(), []);
}

#[test]
fn a_file_that_a_stream_skips_leaves_a_gap() {
    let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
    let log: Vec<_> = (0..100).map(|n| (at(n), format!("line {n}"))).collect();
    let mut lines = Lines::default();
    lines.push(sent(&log[..10], None).as_bytes());
    // The reader is slow: the log is rotated twice meanwhile, at 30 and at 60.
    for begin in [0, 30, 60] {
        let head = sent(&log[begin..], None);
        lines.expect(&head.as_bytes()[..45]);
    }
    let found = lines.push(sent(&log[10..30], None).as_bytes());
    assert_eq!(found.len(), 20);
    let found = lines.push(sent(&log[60..], None).as_bytes());
    let (from, to) = (at(29), Some(at(60)));
    assert_eq!(found[0], Found::Gap { from, to });
    assert_eq!(found.len(), 41);
}

#[test]
fn no_line_is_lost_when_the_clock_is_set_back() {
    let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
    let times = [100, 101, 102, 5, 6, 7];
    let log: Vec<_> = times.map(|time| (at(time), time.to_string())).into();
    let mut lines = Lines::default();
    let mut got = texts(lines.push(sent(&log[..5], None).as_bytes()));
    let since = lines.resume();
    got.extend(texts(lines.push(sent(&log, since).as_bytes())));
    assert!(got.ends_with(&["7".to_owned()]), "{got:?}");
    for line in &log {
        assert!(got.contains(&line.1), "{line:?}");
    }
}

/// An event of a log or its reader.
#[derive(Debug, Clone)]
enum Happens {
    /// Lines are written. For each, the time since the previous line in steps of 0.4 s, and true if
    /// it reached the log late.
    Written(Vec<(u8, bool)>),
    /// This number of bytes arrives, in pieces.
    Read(usize, usize),
    /// The connection fails.
    Breaks,
    /// Only the last lines remain for new readers.
    Rotated(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    let line = (0_u8..4, proptest::bool::weighted(0.2));
    prop_oneof![
        3 => proptest::collection::vec(line, 1..8).prop_map(Happens::Written),
        4 => (0_usize..300, 1_usize..60).prop_map(|(bytes, piece)| Happens::Read(bytes, piece)),
        2 => Just(Happens::Breaks),
        1 => (0_usize..4).prop_map(Happens::Rotated),
    ]
}

/// A log on its node, with a reader and the expected lines.
#[derive(Default)]
struct World {
    now: i64,
    log: Vec<(Timestamp, String)>,
    /// The first line that a new reader finds.
    first: usize,
    /// The rest of the connection: the lines to send, and the number of bytes that were sent of the
    /// first of them.
    connection: Option<(Vec<usize>, usize)>,
    /// The number of lines that were passed to the connection.
    delivered: usize,
    since: Option<Timestamp>,
    lines: Lines,
    got: Vec<String>,
    expected: BTreeSet<usize>,
    rotated: bool,
}

impl World {
    fn text(&self, line: usize) -> String {
        sent(&self.log[line..=line], None)
    }

    /// Fills the connection with the lines that existed when it was made and the lines that are
    /// written later, regardless of rotations.
    fn fill(&mut self) {
        let since = self.since;
        let is_wanted = |time: Timestamp| since.is_none_or(|since| time >= since);
        let (first, log) = (self.first, &self.log);
        let (waiting, _) = self.connection.get_or_insert_with(|| {
            self.delivered = first;
            (Vec::new(), 0)
        });
        waiting.extend((self.delivered..log.len()).filter(|line| is_wanted(log[*line].0)));
        self.delivered = log.len();
    }

    fn read(&mut self, mut bytes: usize, piece: usize) {
        self.fill();
        while let Some((waiting, come)) = self.connection.take() {
            let Some(line) = waiting.first().copied().filter(|_| bytes > 0) else {
                self.connection = Some((waiting, come));
                return;
            };
            let text = self.text(line);
            let next =
                &text.as_bytes()[come..text.len().min(come.saturating_add(bytes.min(piece)))];
            bytes -= next.len();
            let got = texts(self.lines.push(next));
            self.got.extend(got);
            if come + next.len() == text.len() {
                self.expected.insert(line);
                self.connection = Some((waiting[1..].to_vec(), 0));
            } else {
                self.connection = Some((waiting, come + next.len()));
            }
        }
    }

    fn see(&mut self, happens: Happens) {
        match happens {
            Happens::Written(lines) => {
                for (step, is_late) in lines {
                    self.now += i64::from(step) * 400_000_000;
                    // Two streams are written to one log.
                    let late = if is_late { 300_000_000 } else { 0 };
                    let time = 1_700_000_000_000_000_000 + self.now - late;
                    let time = Timestamp::from_nanosecond(time.into()).unwrap();
                    let number = self.log.len();
                    self.log.push((time, format!("{number}")));
                }
                if self.connection.is_some() {
                    self.fill();
                }
            }
            Happens::Read(bytes, piece) => self.read(bytes, piece),
            Happens::Breaks => {
                self.connection = None;
                // If such a line is rotated away before it is repeated, it belongs to the gap.
                let doubtful = self.lines.doubtful.as_ref();
                if let Some((.., text)) = doubtful {
                    self.expected.remove(&text.parse().unwrap());
                }
                self.since = self.lines.resume();
            }
            Happens::Rotated(left) => {
                self.first = self.first.max(self.log.len().saturating_sub(left));
                self.rotated = true;
            }
        }
    }
}

proptest! {
    /// Regardless of chunks, connection failures and rotations, each received line is delivered
    /// once and in order.
    #[test]
    fn what_the_connection_brought_comes_once_and_in_order(
        all in proptest::collection::vec(happens(), 0..40)
    ) {
        let mut world = World::default();
        for happens in all {
            world.see(happens);
        }
        world.read(usize::MAX, usize::MAX);
        let last = texts(world.lines.finish());
        world.got.extend(last);
        // Missing lines are reported as a gap, except for the first lines of a log.
        let mut expected = Vec::new();
        let mut last = None;
        for line in &world.expected {
            if last.is_some_and(|last| last + 1 < *line) {
                expected.push("<gap>".to_owned());
            }
            expected.push(line.to_string());
            last = Some(*line);
        }
        let holes = world.got.iter().filter(|got| *got == "<gap>").count();
        let needed = expected.iter().filter(|line| *line == "<gap>").count();
        prop_assert!(holes == needed || world.rotated, "{:?}", world.got);
        // A rotation between two lines looks like a rotation that removed lines.
        let mut at = 0;
        for got in &world.got {
            if Some(got) == expected.get(at) {
                at += 1;
            } else {
                prop_assert_eq!(got, "<gap>");
            }
        }
        prop_assert_eq!(at, expected.len(), "{:?}", world.got);
    }

    /// The same test with lines of equal text and time, if no lines are rotated away.
    #[test]
    fn nothing_is_lost_or_doubled(
        steps in proptest::collection::vec((0_i64..3, "[a-z ]{0,6}"), 0..30),
        breaks in proptest::collection::vec(0_usize..400, 0..5),
        piece in 1_usize..40,
    ) {
        let mut time = 1_700_000_000_000_000_000_i64;
        let mut log = Vec::new();
        for (step, text) in steps {
            time += step * 400_000_000;
            log.push((Timestamp::from_nanosecond(time.into()).unwrap(), text));
        }
        let mut lines = Lines::default();
        let mut got = Vec::new();
        for cut in breaks.into_iter().map(Some).chain([None]) {
            let text = sent(&log, lines.resume());
            let end = cut.unwrap_or(text.len()).min(text.len());
            for bytes in text.as_bytes()[..end].chunks(piece) {
                got.extend(texts(lines.push(bytes)));
            }
        }
        got.extend(texts(lines.finish()));
        let expected: Vec<_> = log.into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(got, expected);
    }
}
