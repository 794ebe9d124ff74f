//! Complete lines from a log's bytes, each once, also when the connection
//! breaks and the log is read again. Pure.

mod heads;
mod recent;

use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;

use heads::Heads;
use recent::{Recent, Verdict};

/// Bytes of a line that are handed on at once. Longer lines come in parts, so that
/// memory stays bounded.
const LONGEST: usize = 1 << 20;

/// What a log's bytes complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A line, or a part of a very long one, without its newline.
    Line {
        time: Option<Timestamp>,
        text: String,
    },
    /// Lines before the next one may be missing: after a break, none of the last
    /// known lines came again.
    Gap {
        from: Timestamp,
        to: Option<Timestamp>,
    },
}

/// Cuts a log that was asked for with timestamps into lines without them,
/// and remembers where it is.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// What is in the buffer continues a line that was handed on in part.
    begun: Option<Begun>,
    /// A line that may be the rest of an old one: the next line tells.
    doubtful: Option<(Timestamp, u64, String)>,
    recent: Recent,
    heads: Heads,
    /// The time of the last line that was handed on, or from which lines are wanted.
    last: Option<Timestamp>,
    hasher: RandomState,
}

/// A line of which parts were handed on.
#[derive(Debug, Clone, Copy)]
struct Begun {
    time: Option<Timestamp>,
    parts: u32,
    /// The whole line is an old one.
    old: bool,
}

impl Lines {
    /// Of a log of which only the last lines are read.
    pub(crate) fn of_tail() -> Self {
        Self {
            recent: Recent::of_tail(),
            ..Self::default()
        }
    }

    /// Of a log of which only the lines from a time on are read.
    pub(crate) fn since(time: Timestamp) -> Self {
        Self {
            last: Some(time),
            ..Self::of_tail()
        }
    }

    /// Begins to read again after a break. Gives the time to ask from; what
    /// the server sends again from before is left out.
    pub(crate) fn resume(&mut self) -> Option<Timestamp> {
        self.buffer = Vec::new();
        (self.begun, self.doubtful) = (None, None);
        self.heads.clear();
        self.recent.resume()
    }

    /// The time of the last line that was handed on, or from which lines are wanted.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Takes the first bytes of the log's current file, whose first lines the stream
    /// must bring if it has not done so yet.
    pub(crate) fn expect(&mut self, head: &[u8]) {
        let lines = head.split(|byte| *byte == b'\n').take(2).map_while(|line| {
            // What cuts a character off is not in the line.
            let text = String::from_utf8_lossy(line);
            let (time, text) = without_time(text.trim_end_matches('\u{fffd}'));
            Some((time?, text.to_owned()))
        });
        self.heads.expect(lines.collect(), self.last);
    }

    /// The beginning of a line whose end has not come yet, without its time.
    pub(crate) fn unfinished(&self) -> &[u8] {
        if self.begun.is_some() {
            return &self.buffer;
        }
        position(&self.buffer, b' ').map_or(&[], |space| &self.buffer[space + 1..])
    }

    /// Takes bytes, gives what they complete.
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
                    // Always at the same place, so that a part is known again.
                    let left = self.buffer.split_off(boundary(&self.buffer));
                    let part = std::mem::replace(&mut self.buffer, left);
                    self.take(&part, false, &mut lines);
                }
            }
        }
        lines
    }

    /// At the log's true end: the last line, if no newline ended it.
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

    /// A line, or the next part of one, unless it was handed on before.
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

/// A line's time, if it has one, and the rest.
fn without_time(text: &str) -> (Option<Timestamp>, &str) {
    // An empty line may come without the space.
    let (time, line) = text.split_once(' ').unwrap_or((text, ""));
    match time.parse() {
        Ok(time) => (Some(time), line),
        Err(_) => (None, text),
    }
}

/// Where to cut what is longer than [`LONGEST`]: not within a character.
fn boundary(bytes: &[u8]) -> usize {
    let is_inside = |at: &usize| bytes[*at] & 0b1100_0000 == 0b1000_0000;
    let mut places = (LONGEST - 3..=LONGEST).rev();
    places.find(|at| !is_inside(at)).unwrap_or(LONGEST)
}

#[cfg(test)]
mod tests;
