//! Recently delivered lines of a log, to recognize them when they are sent again.
//!
//! Servers accept start times only in whole seconds. Lines may have equal times, and times may go
//! back a little, because two streams are written to one log. Also, the file with the first of them
//! may have been rotated away. Therefore, lines are identified by time and text.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

/// The number of lines that are remembered individually.
const KEPT: usize = 4096;
/// The maximum difference by which timestamps may go back.
const MARGIN: SignedDuration = SignedDuration::from_secs(1);

/// The classification of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    New,
    /// The line was already delivered.
    Known,
    /// The line is older than all remembered lines.
    Old,
    /// The line is old if a remembered line follows, and new otherwise. A kubelet may begin within
    /// a long line that it has split.
    Doubtful,
}

/// Hashes of the lines of the last seconds, in order.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: VecDeque<(Timestamp, u64)>,
    /// The latest time, unless the clock was set back.
    high: Option<Timestamp>,
    /// The time of the newest line of the last seconds that is no longer remembered, and the
    /// number of lines with this time.
    dropped: Option<(Timestamp, usize)>,
    again: Option<Again>,
    /// The time of the last known line, when lines after it are missing.
    missed: Option<Timestamp>,
    /// The time of the first line, for a log of which only the last lines are read.
    begin: Option<Timestamp>,
    of_tail: bool,
}

/// The state while a log is read again.
#[derive(Debug)]
struct Again {
    /// Remembered lines that have not been repeated yet.
    left: HashMap<u64, usize>,
    dropped: Option<(Timestamp, usize)>,
    since: Timestamp,
    last: Timestamp,
    is_first: bool,
    met: bool,
}

impl Recent {
    pub(super) fn of_tail() -> Self {
        Self {
            of_tail: true,
            ..Self::default()
        }
    }

    /// Restarts reading. Returns the time to request the log from.
    pub(super) fn resume(&mut self) -> Option<Timestamp> {
        let last = self.high?;
        let since = start(last);
        let mut left = HashMap::with_capacity(self.kept.len());
        for (_, mark) in &self.kept {
            *left.entry(*mark).or_default() += 1;
        }
        self.again = Some(Again {
            left,
            dropped: self.dropped,
            since,
            last,
            is_first: true,
            met: false,
        });
        Some(since)
    }

    /// Classifies a line, and remembers its hash if it is new. Further parts of a line (`part`) are
    /// new unless they are remembered.
    pub(super) fn meet(&mut self, time: Timestamp, mark: u64, part: bool) -> Verdict {
        let begin = self.begin.filter(|_| self.of_tail);
        if let Some(again) = &mut self.again {
            let verdict = again.meet(time, mark, begin);
            // After a remembered line, nothing is missing. If a new line comes first, the file with
            // the remembered lines was rotated away, and possibly more.
            if verdict == Verdict::New && !std::mem::replace(&mut again.met, true) {
                self.missed = Some(again.last);
            }
            // Lines after this time are not repeated.
            if time.as_second() > again.last.as_second() + MARGIN.as_secs() {
                self.again = None;
            }
            match verdict {
                Verdict::Known => return verdict,
                Verdict::Old | Verdict::Doubtful if !part => return verdict,
                _ => {}
            }
        }
        self.begin.get_or_insert(time);
        self.keep(time, mark);
        Verdict::New
    }

    /// The time of the last known line, once, when lines after it may be missing.
    pub(super) fn missed(&mut self) -> Option<Timestamp> {
        self.missed.take()
    }

    /// The same time at the end of a log in which no remembered line was repeated.
    pub(super) fn never_met(&mut self) -> Option<Timestamp> {
        let again = self.again.take().filter(|again| !again.met);
        self.missed.take().or(again.map(|again| again.last))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len() + self.again.as_ref().map_or(0, |again| again.left.len())
    }

    pub(super) fn keep(&mut self, time: Timestamp, mark: u64) {
        let set_back = |high: &Timestamp| time.duration_until(*high) > MARGIN;
        let high = self.high.filter(|high| !set_back(high));
        let high = high.map_or(time, |high| high.max(time));
        self.high = Some(high);
        let start = start(high);
        while self.kept.front().is_some_and(|(old, _)| *old < start) {
            self.kept.pop_front();
        }
        self.dropped = self.dropped.filter(|(old, _)| (start..=high).contains(old));
        if self.kept.len() >= KEPT
            && let Some((old, _)) = self.kept.pop_front()
        {
            self.dropped = match self.dropped {
                Some((time, count)) if time == old => Some((time, count + 1)),
                _ => Some((old, 1)),
            };
        }
        self.kept.push_back((time, mark));
    }
}

impl Again {
    fn meet(&mut self, time: Timestamp, mark: u64, begin: Option<Timestamp>) -> Verdict {
        let is_first = std::mem::take(&mut self.is_first);
        if let Some(count) = self.left.get_mut(&mark) {
            *count -= 1;
            if *count == 0 {
                self.left.remove(&mark);
            }
            self.met = true;
            return Verdict::Known;
        }
        let was_dropped = match &mut self.dropped {
            Some((dropped, count)) if time == *dropped && *count > 0 => {
                *count -= 1;
                true
            }
            Some((dropped, _)) => time < *dropped,
            None => false,
        };
        self.met |= was_dropped;
        let before_tail = !self.met && begin.is_some_and(|begin| time <= begin);
        if time < self.since || was_dropped || before_tail {
            Verdict::Old
        } else if is_first && time < self.last {
            Verdict::Doubtful
        } else {
            Verdict::New
        }
    }
}

/// The time to request lines from if the last line has `time`.
fn start(time: Timestamp) -> Timestamp {
    let second = Timestamp::from_second(time.as_second()).unwrap_or(time);
    second.checked_sub(MARGIN).unwrap_or(second)
}
