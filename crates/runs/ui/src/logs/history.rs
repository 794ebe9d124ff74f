//! The lines that exist when a run is followed first, in the order of their times. The logs of
//! tasks are read side by side, so that they do not arrive in this order. Pure.

use std::collections::HashMap;

use jiff::Timestamp;
use longshore_launcher::follow::{LogGap, LogLine};

use super::chunk::Chunk;

/// The limits of the ordered lines. Further lines follow as they arrive.
const MOST_LINES: usize = 200_000;
const MOST_BYTES: usize = 32 << 20;

#[derive(Debug)]
enum Entry {
    Line(LogLine),
    Gap(LogGap),
}

/// Lines to order.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: Vec<(Timestamp, Entry)>,
    bytes: usize,
    /// The time of the last line of each source.
    last: HashMap<String, Timestamp>,
}

impl History {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_LINES || self.bytes >= MOST_BYTES
    }

    pub(super) fn add(&mut self, line: LogLine) {
        self.bytes = self.bytes.saturating_add(line.line.len());
        let source = match &line.container {
            Some(container) => format!("{} {container}", line.task),
            None => line.task.to_string(),
        };
        let time = self.time(source, line.time);
        self.entries.push((time, Entry::Line(line)));
    }

    pub(super) fn add_gap(&mut self, gap: LogGap) {
        let time = self.time(gap.task.to_string(), gap.from);
        self.entries.push((time, Entry::Gap(gap)));
    }

    /// The time of a line, but not before the line above it.
    fn time(&mut self, source: String, time: Option<Timestamp>) -> Timestamp {
        let last = self.last.entry(source).or_insert(Timestamp::MIN);
        *last = time.map_or(*last, |time| time.max(*last));
        *last
    }

    /// The lines in their order.
    pub(super) fn chunks(mut self, size: usize) -> Vec<Chunk> {
        self.entries.sort_by_key(|(time, _)| *time);
        let mut chunks = Vec::new();
        let mut chunk = Chunk::default();
        for (_, entry) in self.entries {
            match entry {
                Entry::Line(line) => chunk.add(&line),
                Entry::Gap(gap) => chunk.add_gap(&gap),
            }
            if chunk.len() >= size {
                chunks.push(std::mem::take(&mut chunk));
            }
        }
        chunks.push(chunk);
        chunks
    }
}

#[cfg(test)]
mod tests {
    use longshore_launcher::names::Task;

    use super::*;

    fn add(history: &mut History, role: &str, second: Option<i64>, text: &str) {
        history.add(LogLine {
            task: Task {
                role: role.to_owned(),
                index: 0,
            },
            container: None,
            time: second.and_then(|second| Timestamp::from_second(second).ok()),
            line: text.to_owned(),
        });
    }

    #[test]
    fn lines_are_ordered_by_time_and_within_a_task_as_written() {
        let mut history = History::default();
        add(&mut history, "a", Some(1), "a1");
        add(&mut history, "a", None, "a1b");
        add(&mut history, "a", Some(4), "a4");
        // The clock was set back.
        add(&mut history, "a", Some(3), "a3");
        add(&mut history, "b", Some(2), "b2");
        add(&mut history, "b", Some(5), "b5");
        let chunks = history.chunks(4);
        let texts: Vec<String> = chunks
            .iter()
            .map(|chunk| String::from_utf8_lossy(&chunk.encode(0)).into_owned())
            .collect();
        let wanted = ["a1", "a1b", "b2", "a4", "a3", "b5"];
        let all = texts.concat();
        let places: Vec<Option<usize>> = wanted
            .iter()
            .map(|text| all.find(&format!("\"{text}\"")))
            .collect();
        assert!(places.is_sorted() && !places.contains(&None), "{all}");
        assert_eq!(texts.len(), 2);
    }
}
