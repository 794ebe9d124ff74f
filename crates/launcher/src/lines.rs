//! Complete lines from a log's bytes, each once, also when the connection
//! breaks and the log is read again. Pure.

use jiff::Timestamp;

/// Longer lines are handed on in parts: memory stays bounded.
const LONGEST: usize = 1 << 20;

/// Cuts a log that was asked for with timestamps into lines without them,
/// and remembers where it is.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// What is in the buffer continues a line that was handed on in part.
    in_line: bool,
    /// The time of the last line handed on, and how many lines of that very
    /// time were.
    last: Option<(Timestamp, usize)>,
    /// While reading again: what was handed on before.
    known: Option<(Timestamp, usize)>,
}

impl Lines {
    /// Begins to read again after a break. Gives the time to ask from; what
    /// the server sends again from before is left out.
    pub(crate) fn resume(&mut self) -> Option<Timestamp> {
        self.buffer.clear();
        self.in_line = false;
        self.known = self.last;
        self.last.map(|(time, _)| time)
    }

    /// Takes bytes, gives the lines that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.buffer.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            lines.extend(self.take());
            self.in_line = false;
        }
        self.buffer.extend_from_slice(rest);
        if self.buffer.len() > LONGEST {
            lines.extend(self.take());
            self.in_line = true;
        }
        lines
    }

    /// At the log's true end: the last line, if no newline ended it.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if self.buffer.is_empty() {
            None
        } else {
            self.take()
        }
    }

    fn take(&mut self) -> Option<String> {
        let raw = std::mem::take(&mut self.buffer);
        let text = String::from_utf8_lossy(&raw);
        if self.in_line {
            return Some(text.into_owned());
        }
        let (time, line) = match text.split_once(' ') {
            Some((time, line)) => (time.parse::<Timestamp>().ok(), line),
            // An empty line may come without the space.
            None => (text.parse().ok(), ""),
        };
        let Some(time) = time else {
            return Some(text.into_owned());
        };
        if let Some((known, count)) = self.known {
            if time < known {
                return None;
            }
            if time == known && count > 0 {
                self.known = Some((known, count - 1));
                return None;
            }
            self.known = None;
        }
        self.last = match self.last {
            Some((last, count)) if last == time => Some((last, count + 1)),
            _ => Some((time, 1)),
        };
        Some(line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const A: &str = "2026-01-01T00:00:01.5Z";
    const B: &str = "2026-01-01T00:00:02.000000001Z";

    #[test]
    fn lines_come_whole_and_without_their_time() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(format!("{A} he").as_bytes()), [""; 0]);
        assert_eq!(
            lines.push(format!("llo\n{A} \n{B} wor").as_bytes()),
            ["hello", ""]
        );
        assert_eq!(lines.push(b"ld"), [""; 0]);
        assert_eq!(lines.finish().unwrap(), "world");
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn bytes_that_are_no_text_and_lines_without_time_come_too() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"plain\n\xff\n"), ["plain", "\u{fffd}"]);
    }

    #[test]
    fn a_very_long_line_comes_in_parts() {
        let mut lines = Lines::default();
        let long = "x".repeat(LONGEST + 10);
        let first = lines.push(format!("{A} {long}").as_bytes());
        let second = lines.push(b"yz w\n");
        assert_eq!(first.concat() + &second.concat(), long + "yz w");
        assert_eq!(lines.push(format!("{B} next\n").as_bytes()), ["next"]);
    }

    proptest! {
        /// However the log is cut into pieces and wherever the connection
        /// breaks: each line comes once and in order.
        #[test]
        fn nothing_is_lost_or_doubled(
            steps in proptest::collection::vec((0_i64..3, "[a-z ]{0,6}"), 0..30),
            breaks in proptest::collection::vec(0_usize..400, 0..5),
            piece in 1_usize..40,
        ) {
            let mut time = 1_700_000_000_000_000_000_i64;
            let mut log = Vec::new();
            let mut expected = Vec::new();
            for (step, text) in steps {
                time += i64::from(i32::try_from(step).unwrap()) * 400_000_000;
                let time = Timestamp::from_nanosecond(time.into()).unwrap();
                log.push((time, format!("{time} {text}\n")));
                expected.push(text);
            }
            let mut lines = Lines::default();
            let mut got = Vec::new();
            for cut in breaks.into_iter().map(Some).chain([None]) {
                // Servers know whole seconds only.
                let since = lines.resume().map(|time| time.as_second());
                let text: String = log
                    .iter()
                    .filter(|(time, _)| since.is_none_or(|since| time.as_second() >= since))
                    .map(|(_, line)| line.as_str())
                    .collect();
                let end = cut.unwrap_or(text.len()).min(text.len());
                for bytes in text.as_bytes()[..end].chunks(piece) {
                    got.extend(lines.push(bytes));
                }
            }
            got.extend(lines.finish());
            prop_assert_eq!(got, expected);
        }
    }
}
