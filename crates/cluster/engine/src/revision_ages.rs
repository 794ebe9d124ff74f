//! Tracks when each revision was current, so that old history can be dropped by age.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// Minimum interval between two samples. History is dropped in steps of this
/// size, which keeps each step small.
const MIN_SAMPLE_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// Revisions and the times at which they were current, oldest first.
#[derive(Debug)]
pub(crate) struct RevisionAges {
    retention: SignedDuration,
    samples: VecDeque<(Timestamp, u64)>,
}

impl RevisionAges {
    /// Creates an empty tracker for a retention time.
    pub(crate) fn new(retention: SignedDuration) -> Self {
        Self {
            retention,
            samples: VecDeque::new(),
        }
    }

    /// Records the current revision. Returns the newest revision whose events
    /// have outlived the retention time, if any.
    pub(crate) fn record(&mut self, now: Timestamp, revision: u64) -> Option<u64> {
        // If the clock was set back, clamp the samples so that history is not kept too long.
        for (time, _) in self.samples.iter_mut().rev() {
            if *time <= now {
                break;
            }
            *time = now;
        }
        let newest = self.samples.back();
        if newest.is_none_or(|(time, _)| now.duration_since(*time) >= MIN_SAMPLE_INTERVAL) {
            self.samples.push_back((now, revision));
        }
        let mut old = None;
        while let Some((time, revision)) = self.samples.front()
            && now.duration_since(*time) > self.retention
        {
            old = Some(*revision);
            self.samples.pop_front();
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
    fn expired_revisions_are_returned_once() {
        let mut ages = RevisionAges::new(SignedDuration::from_secs(60));
        assert_eq!(ages.record(at(0), 10), None);
        assert_eq!(
            ages.record(at(3), 20),
            None,
            "too close to the previous sample"
        );
        assert_eq!(ages.record(at(6), 30), None);
        assert_eq!(ages.record(at(60), 40), None);
        assert_eq!(ages.record(at(61), 50), Some(10));
        assert_eq!(ages.record(at(62), 50), None);
        assert_eq!(ages.record(at(1_000), 60), Some(40));
        assert_eq!(ages.samples.len(), 1);
    }

    #[test]
    fn setting_the_clock_back_does_not_extend_retention() {
        let mut ages = RevisionAges::new(SignedDuration::from_secs(60));
        assert_eq!(ages.record(at(10_000), 10), None);
        assert_eq!(ages.record(at(0), 20), None);
        assert_eq!(ages.record(at(61), 30), Some(10));
    }
}
