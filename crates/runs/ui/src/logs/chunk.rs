//! Some lines, encoded as JSON once for all tabs. Pure.

use std::collections::HashMap;

use bytes::Bytes;
use longshore_launcher::{
    follow::{LogGap, LogLine},
    terminal_text::shown,
};
use serde::Serialize;

/// A longer line is cut, so that a page can show it.
const LONGEST_LINE: usize = 16 << 10;

/// A line: the index of its task in `tasks`, its time in milliseconds, its text, and true if it
/// reports missing lines.
#[derive(Debug, Serialize)]
struct Line(usize, Option<i64>, String, bool);

/// Lines that are encoded together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    tasks: Vec<String>,
    known: HashMap<String, usize>,
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Encoded<'a> {
    first: u64,
    tasks: &'a [String],
    lines: &'a [Line],
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Adds a line. Of its control sequences, only colours are kept.
    pub(super) fn add(&mut self, line: &LogLine) {
        let task = match &line.container {
            Some(container) => format!("{} {container}", line.task),
            None => line.task.to_string(),
        };
        let task = self.task(task);
        let time = line.time.map(jiff::Timestamp::as_millisecond);
        self.lines.push(Line(task, time, cut(&line.line), false));
    }

    /// Adds a report of missing lines.
    pub(super) fn add_gap(&mut self, gap: &LogGap) {
        let task = self.task(gap.task.to_string());
        let time = gap.from.map(jiff::Timestamp::as_millisecond);
        self.lines.push(Line(task, time, gap.to_string(), true));
    }

    fn task(&mut self, name: String) -> usize {
        if let Some(known) = self.known.get(&name) {
            return *known;
        }
        let position = self.tasks.len();
        self.tasks.push(name.clone());
        self.known.insert(name, position);
        position
    }

    /// The JSON. `first` is the number of the first line.
    pub(super) fn encode(&self, first: u64) -> Bytes {
        let encoded = Encoded {
            first,
            tasks: &self.tasks,
            lines: &self.lines,
        };
        serde_json::to_vec(&encoded).unwrap_or_default().into()
    }
}

/// The line as a terminal would show it, and at most [`LONGEST_LINE`] bytes of it.
fn cut(line: &str) -> String {
    let mut end = line.len().min(LONGEST_LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let rest = line.len() - end;
    let text = shown(&line[..end]);
    match rest {
        0 => text.into_owned(),
        rest => format!("{text} \u{2026} ({rest} more bytes)"),
    }
}

#[cfg(test)]
mod tests {
    use longshore_launcher::names::Task;

    use super::*;

    fn line(role: &str, text: &str) -> LogLine {
        LogLine {
            task: Task {
                role: role.to_owned(),
                index: 0,
            },
            container: None,
            time: jiff::Timestamp::from_millisecond(1500).ok(),
            line: text.to_owned(),
        }
    }

    #[test]
    fn lines_are_encoded_with_their_tasks() {
        let mut chunk = Chunk::default();
        chunk.add(&line("ps", "a"));
        chunk.add(&line("worker", "\x1b[31mred\x1b[2J"));
        chunk.add(&line("ps", "10%\r20%"));
        let json: serde_json::Value = serde_json::from_slice(&chunk.encode(7)).unwrap_or_default();
        assert_eq!(
            json,
            serde_json::json!({
                "first": 7,
                "tasks": ["ps/0", "worker/0"],
                "lines": [
                    [0, 1500, "a", false],
                    [1, 1500, "\x1b[31mred\x1b[0m", false],
                    [0, 1500, "20%", false],
                ],
            })
        );
    }

    #[test]
    fn long_lines_are_cut() {
        let long = "\u{e9}".repeat(LONGEST_LINE);
        let text = cut(&long);
        assert!(text.len() < LONGEST_LINE + 64);
        assert!(
            text.ends_with("(16384 more bytes)"),
            "{}",
            &text[text.len() - 40..]
        );
    }
}
