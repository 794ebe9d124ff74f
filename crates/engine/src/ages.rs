//! Which revision was current at which time, so that history can be forgotten
//! by its age.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// Marks are this far apart, at least. History is forgotten in such pieces, so
/// that each of them is small.
const STEP: SignedDuration = SignedDuration::from_secs(5);

/// Revisions and when they were current, oldest first.
#[derive(Debug)]
pub(crate) struct Ages {
    kept: SignedDuration,
    marks: VecDeque<(Timestamp, u64)>,
}

impl Ages {
    /// With how long history is kept.
    pub(crate) fn new(kept: SignedDuration) -> Self {
        Self {
            kept,
            marks: VecDeque::new(),
        }
    }

    /// Notes the current revision, and answers up to which one events are too
    /// old, if some have become so.
    pub(crate) fn note(&mut self, now: Timestamp, revision: u64) -> Option<u64> {
        // A clock that was set back keeps nothing longer than it should be.
        for (time, _) in self.marks.iter_mut().rev() {
            if *time <= now {
                break;
            }
            *time = now;
        }
        let newest = self.marks.back();
        if newest.is_none_or(|(time, _)| now.duration_since(*time) >= STEP) {
            self.marks.push_back((now, revision));
        }
        let mut old = None;
        while let Some((time, revision)) = self.marks.front()
            && now.duration_since(*time) > self.kept
        {
            old = Some(*revision);
            self.marks.pop_front();
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn what_is_older_than_the_time_is_told_once() {
        let mut ages = Ages::new(SignedDuration::from_secs(60));
        assert_eq!(ages.note(at(0), 10), None);
        assert_eq!(ages.note(at(3), 20), None, "too close to the mark before");
        assert_eq!(ages.note(at(6), 30), None);
        assert_eq!(ages.note(at(60), 40), None);
        assert_eq!(ages.note(at(61), 50), Some(10));
        assert_eq!(ages.note(at(62), 50), None);
        assert_eq!(ages.note(at(1_000), 60), Some(40));
        assert_eq!(ages.marks.len(), 1);
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nothing_longer() {
        let mut ages = Ages::new(SignedDuration::from_secs(60));
        assert_eq!(ages.note(at(10_000), 10), None);
        assert_eq!(ages.note(at(0), 20), None);
        assert_eq!(ages.note(at(61), 30), Some(10));
    }
}
