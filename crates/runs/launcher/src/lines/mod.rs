//! Splits a log into complete lines, each exactly once, even if the connection fails and the
//! log is read again. Pure.

mod heads;
mod recent;

use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;

use heads::Heads;
use recent::{Recent, Verdict};

/// The maximum number of bytes of a line in one piece. Longer lines are split, so that memory
/// stays bounded.
const LONGEST: usize = 1 << 20;

/// The result of parsing log bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line, or a part of a very long line, without its newline.
    Line {
        time: Option<Timestamp>,
        text: String,
    },
    /// Lines before the next one may be missing: after a reconnection, none of the last known
    /// lines was repeated.
    Gap {
        from: Timestamp,
        to: Option<Timestamp>,
    },
}

/// Splits a log with timestamps into lines without them, and tracks the position.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// True if the buffer continues a line whose beginning was delivered.
    begun: Option<Begun>,
    /// A line that may be the rest of an old one. The next line decides.
    doubtful: Option<(Timestamp, u64, String)>,
    recent: Recent,
    heads: Heads,
    /// The time of the last delivered line, or the requested start time.
    last: Option<Timestamp>,
    hasher: RandomState,
}

/// A partially delivered line.
#[derive(Debug, Clone, Copy)]
struct Begun {
    time: Option<Timestamp>,
    parts: u32,
    /// True if the whole line was already delivered.
    old: bool,
}

impl Lines {
    /// Creates the state for a log of which only the last lines are read.
    pub(crate) fn of_tail() -> Self {
        Self {
            recent: Recent::of_tail(),
            ..Self::default()
        }
    }

    /// Creates the state for a log that is read from a start time.
    pub(crate) fn since(time: Timestamp) -> Self {
        Self {
            last: Some(time),
            ..Self::of_tail()
        }
    }

    /// Restarts after a connection failure. Returns the time to request the log from. Repeated
    /// lines are dropped.
    pub(crate) fn resume(&mut self) -> Option<Timestamp> {
        self.buffer = Vec::new();
        (self.begun, self.doubtful) = (None, None);
        self.heads.clear();
        self.recent.resume()
    }

    /// The time of the last delivered line, or the requested start time.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Registers the first bytes of the current log file, whose first lines the stream must
    /// deliver unless it already has.
    pub(crate) fn expect(&mut self, head: &[u8]) {
        let lines = head.split(|byte| *byte == b'\n').take(2).map_while(|line| {
            // A truncated character is not part of the line.
            let text = String::from_utf8_lossy(line);
            let (time, text) = without_time(text.trim_end_matches('\u{fffd}'));
            Some((time?, text.to_owned()))
        });
        self.heads.expect(lines.collect(), self.last);
    }

    /// The unfinished line, without its time.
    pub(crate) fn unfinished(&self) -> &[u8] {
        if self.begun.is_some() {
            return &self.buffer;
        }
        position(&self.buffer, b' ').map_or(&[], |space| &self.buffer[space + 1..])
    }

    /// Parses bytes and returns the completed lines.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Found> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = LONGEST + 1 - self.buffer.len();
            let next = &rest[..rest.len().min(room)];
            if let Some(end) = position(next, b'\n') {
                self.buffer.extend_from_slice(&next[..end]);
                rest = &rest[end + 1..];
                let whole = std::mem::take(&mut self.buffer);
                self.take(&whole, true, &mut lines);
                self.begun = None;
            } else {
                self.buffer.extend_from_slice(next);
                rest = &rest[next.len()..];
                if self.buffer.len() > LONGEST {
                    // Always split at the same position, so that repeated parts are recognized.
                    let left = self.buffer.split_off(boundary(&self.buffer));
                    let part = std::mem::replace(&mut self.buffer, left);
                    self.take(&part, false, &mut lines);
                }
            }
        }
        lines
    }

    /// At the end of the log, returns the last line if it has no newline.
    pub(crate) fn finish(&mut self) -> Vec<Found> {
        let mut lines = Vec::new();
        if !self.buffer.is_empty() {
            let last = std::mem::take(&mut self.buffer);
            self.take(&last, true, &mut lines);
        }
        let doubtful = self.doubtful.take();
        if let Some(from) = self.recent.never_met() {
            let to = doubtful.as_ref().map(|(time, _, _)| *time);
            lines.push(Found::Gap { from, to });
        }
        lines.extend(doubtful.map(|(time, _, text)| Found::line(Some(time), text)));
        lines
    }

    /// Adds a line, or the next part of one, unless it was already delivered.
    fn take(&mut self, raw: &[u8], is_whole: bool, lines: &mut Vec<Found>) {
        let text = String::from_utf8_lossy(raw);
        let (mut begun, text) = match self.begun {
            Some(begun) => (begun, &*text),
            None => {
                let (time, text) = without_time(&text);
                let (parts, old) = (0, false);
                (Begun { time, parts, old }, text)
            }
        };
        let mark = self.hasher.hash_one((begun.time, begun.parts, text));
        let verdict = match begun.time {
            _ if begun.old => Verdict::Old,
            Some(time) => self.recent.meet(time, mark, begun.parts > 0),
            None => Verdict::New,
        };
        let doubtful = self.doubtful.take();
        let skipped = match (verdict, begun) {
            (
                Verdict::New,
                Begun {
                    time: Some(time),
                    parts: 0,
                    ..
                },
            ) => {
                let skipped = self.heads.skipped(time, text, self.last);
                self.last = Some(time);
                skipped
            }
            _ => None,
        };
        if let Some(from) = self.recent.missed() {
            let first = doubtful.as_ref().map(|(time, _, _)| *time);
            let to = first.or(begun.time);
            lines.push(Found::Gap { from, to });
        } else if let Some((from, to)) = skipped {
            let to = Some(to);
            lines.push(Found::Gap { from, to });
        }
        if let Some((time, mark, text)) = doubtful
            && verdict != Verdict::Known
        {
            self.recent.keep(time, mark);
            lines.push(Found::line(Some(time), text));
        }
        match (verdict, begun.time) {
            (Verdict::Known, _) => {}
            (Verdict::Old, _) => begun.old = true,
            (Verdict::Doubtful, Some(time)) if is_whole => {
                self.doubtful = Some((time, mark, text.to_owned()));
            }
            (Verdict::Doubtful, Some(time)) => {
                self.recent.keep(time, mark);
                lines.push(Found::line(Some(time), text.to_owned()));
            }
            (_, time) => lines.push(Found::line(time, text.to_owned())),
        }
        begun.parts += 1;
        self.begun = Some(begun);
    }
}

impl Found {
    fn line(time: Option<Timestamp>, text: String) -> Self {
        Self::Line { time, text }
    }
}

fn position(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.iter().position(|byte| *byte == wanted)
}

/// Splits a line into its time, if it has one, and the rest.
fn without_time(text: &str) -> (Option<Timestamp>, &str) {
    // An empty line may not have the space.
    let (time, line) = text.split_once(' ').unwrap_or((text, ""));
    match time.parse() {
        Ok(time) => (Some(time), line),
        Err(_) => (None, text),
    }
}

/// The position to split a line longer than [`LONGEST`], at a character boundary.
fn boundary(bytes: &[u8]) -> usize {
    let is_inside = |at: &usize| bytes[*at] & 0b1100_0000 == 0b1000_0000;
    let mut places = (LONGEST - 3..=LONGEST).rev();
    places.find(|at| !is_inside(at)).unwrap_or(LONGEST)
}

#[cfg(test)]
mod tests;
