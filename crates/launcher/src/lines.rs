//! Complete lines from a log's bytes, each once, also when the connection
//! breaks and the log is read again. Pure.

mod recent;

use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;

use recent::{Recent, Verdict};

/// Longer lines are handed on in parts: memory stays bounded.
const LONGEST: usize = 1 << 20;

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

    /// Begins to read again after a break. Gives the time to ask from; what
    /// the server sends again from before is left out.
    pub(crate) fn resume(&mut self) -> Option<Timestamp> {
        self.buffer = Vec::new();
        (self.begun, self.doubtful) = (None, None);
        self.recent.resume()
    }

    /// Takes bytes, gives the lines that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = LONGEST + 1 - self.buffer.len();
            let next = &rest[..rest.len().min(room)];
            if let Some(end) = next.iter().position(|byte| *byte == b'\n') {
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
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.buffer.is_empty() {
            let last = std::mem::take(&mut self.buffer);
            self.take(&last, true, &mut lines);
        }
        lines.extend(self.doubtful.take().map(|(_, _, line)| line));
        lines
    }

    /// A line, or the next part of one, unless it was handed on before.
    fn take(&mut self, raw: &[u8], is_whole: bool, lines: &mut Vec<String>) {
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
        if let Some((time, mark, line)) = self.doubtful.take()
            && verdict != Verdict::Known
        {
            self.recent.keep(time, mark);
            lines.push(line);
        }
        match (verdict, begun.time) {
            (Verdict::Known, _) => {}
            (Verdict::Old, _) => begun.old = true,
            (Verdict::Doubtful, Some(time)) if is_whole => {
                self.doubtful = Some((time, mark, text.to_owned()));
            }
            (Verdict::Doubtful, Some(time)) => {
                self.recent.keep(time, mark);
                lines.push(text.to_owned());
            }
            _ => lines.push(text.to_owned()),
        }
        begun.parts += 1;
        self.begun = Some(begun);
    }
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
