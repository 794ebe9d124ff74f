//! The last lines of a run, within a limit. Pure.

use std::collections::VecDeque;

use bytes::Bytes;

use super::chunk::Chunk;

/// The memory that a chunk needs in addition to its text, in bytes.
const OVERHEAD: usize = 128;

/// The limits of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) lines: u64,
    pub(super) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lines: 1_000_000,
            bytes: 96 << 20,
        }
    }
}

#[derive(Debug)]
struct Stored {
    first: u64,
    lines: u64,
    json: Bytes,
}

/// The last lines.
#[derive(Debug, Default)]
pub(super) struct Ring {
    limits: Limits,
    chunks: VecDeque<Stored>,
    bytes: usize,
    /// The number of the next line.
    next: u64,
}

/// The next lines of a tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// No further lines have arrived yet.
    Nothing,
    /// Some lines, after `dropped` lines that are not kept any more.
    Lines {
        json: Bytes,
        dropped: u64,
        /// The position after these lines.
        next: u64,
    },
}

impl Ring {
    #[cfg(test)]
    pub(super) fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds lines, and drops the oldest if there are too many.
    pub(super) fn add(&mut self, chunk: &Chunk) {
        let lines = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if lines == 0 {
            return;
        }
        let json = chunk.encode(self.next);
        self.bytes = self.bytes.saturating_add(json.len() + OVERHEAD);
        self.chunks.push_back(Stored {
            first: self.next,
            lines,
            json,
        });
        self.next = self.next.saturating_add(lines);
        while self.chunks.len() > 1
            && (self.bytes > self.limits.bytes || self.kept() > self.limits.lines)
        {
            if let Some(old) = self.chunks.pop_front() {
                self.bytes = self.bytes.saturating_sub(old.json.len() + OVERHEAD);
            }
        }
    }

    /// The number of kept lines.
    fn kept(&self) -> u64 {
        let first = self.chunks.front().map_or(self.next, |chunk| chunk.first);
        self.next.saturating_sub(first)
    }

    /// The lines at a position. Positions are those that this function returned, or 0.
    pub(super) fn read(&self, position: u64) -> Next {
        let index = self.chunks.partition_point(|chunk| chunk.first < position);
        let Some(chunk) = self.chunks.get(index) else {
            return Next::Nothing;
        };
        Next::Lines {
            json: chunk.json.clone(),
            dropped: chunk.first.saturating_sub(position),
            next: chunk.first.saturating_add(chunk.lines),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_launcher::{follow::LogLine, names::Task};

    use super::*;

    fn chunk(lines: usize) -> Chunk {
        let mut chunk = Chunk::default();
        for number in 0..lines {
            chunk.add(&LogLine {
                task: Task {
                    role: "main".to_owned(),
                    index: 0,
                },
                container: None,
                time: None,
                line: number.to_string(),
            });
        }
        chunk
    }

    fn position(next: &Next) -> (u64, u64) {
        match next {
            Next::Lines { dropped, next, .. } => (*dropped, *next),
            Next::Nothing => panic!("no lines"),
        }
    }

    #[test]
    fn readers_get_all_lines_in_order() {
        let mut ring = Ring::default();
        assert_eq!(ring.read(0), Next::Nothing);
        ring.add(&chunk(2));
        ring.add(&chunk(0));
        ring.add(&chunk(3));
        assert_eq!(position(&ring.read(0)), (0, 2));
        assert_eq!(position(&ring.read(2)), (0, 5));
        assert_eq!(ring.read(5), Next::Nothing);
    }

    #[test]
    fn the_oldest_lines_are_dropped_and_counted() {
        let limits = Limits {
            lines: 5,
            bytes: usize::MAX,
        };
        let mut ring = Ring::with_limits(limits);
        for _ in 0..4 {
            ring.add(&chunk(2));
        }
        assert_eq!(ring.kept(), 4);
        assert_eq!(position(&ring.read(0)), (4, 6));
        assert_eq!(position(&ring.read(2)), (2, 6));
        assert_eq!(position(&ring.read(6)), (0, 8));
    }

    #[test]
    fn memory_is_limited() {
        let limits = Limits {
            lines: u64::MAX,
            bytes: 4096,
        };
        let mut ring = Ring::with_limits(limits);
        for _ in 0..1000 {
            ring.add(&chunk(1));
        }
        assert!(ring.bytes <= 4096);
        assert!(ring.chunks.len() < 30);
        // The newest lines are always kept, regardless of their size.
        ring.add(&chunk(1000));
        assert_eq!(ring.kept(), 1000);
        assert_eq!(position(&ring.read(0)), (1000, 2000));
    }
}
