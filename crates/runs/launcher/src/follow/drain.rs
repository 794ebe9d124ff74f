//! Decides when the logs of a run have been read far enough to report its end. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// The maximum time without progress of the logs that belong to the outcome, and of the logs of
/// ended pods, before the outcome is reported without them.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The logs of other tasks, which continue, are read until they have been silent for this time.
const QUIET_PERIOD: Duration = Duration::from_secs(1);
/// The maximum time to read the logs of other tasks.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the log readers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    /// A counter that increases while the readers make progress.
    pub(super) progress: u64,
    /// True if the readers wait for the receiver of the events.
    pub(super) is_blocked: bool,
    /// True if a log is being read that belongs to the outcome, or whose pod has ended.
    pub(super) evidence: bool,
    /// True if any log is being read.
    pub(super) any: bool,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    /// The logs must be read further.
    Reading,
    /// The end can be reported.
    Done {
        /// True if the remaining readers are silent, and so have delivered everything.
        is_quiet: bool,
    },
}

/// The state since the outcome was decided.
#[derive(Debug)]
pub(super) struct Drain {
    /// The time since which the readers have made no progress, and their progress at that time.
    quiet_since: Instant,
    progress: u64,
    /// The time when the logs that belong to the outcome had been read.
    evidence_read_at: Option<Instant>,
}

impl Drain {
    pub(super) fn new(progress: u64, now: Instant) -> Self {
        Self {
            quiet_since: now,
            progress,
            evidence_read_at: None,
        }
    }

    pub(super) fn check(&mut self, reading: Reading, now: Instant) -> Drained {
        // Readers that wait for queue capacity are not silent.
        if reading.progress != self.progress || reading.is_blocked {
            (self.progress, self.quiet_since) = (reading.progress, now);
        }
        if reading.evidence && now.duration_since(self.quiet_since) < SILENCE_TIMEOUT {
            return Drained::Reading;
        }
        let evidence_read_at = *self.evidence_read_at.get_or_insert(now);
        let quiet = now.duration_since(self.quiet_since.max(evidence_read_at));
        let is_quiet = quiet >= QUIET_PERIOD;
        let is_late = now.duration_since(evidence_read_at) >= DRAIN_TIMEOUT;
        match reading.any && !is_quiet && !is_late {
            true => Drained::Reading,
            false => Drained::Done { is_quiet },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    /// Checks every 100 ms. Returns the time until the end, and true if the readers are then
    /// silent.
    fn drain(reading: impl Fn(Duration) -> Reading) -> (Duration, bool) {
        let begin = Instant::now();
        let mut drain = Drain::new(0, begin);
        let mut passed = Duration::ZERO;
        loop {
            if let Drained::Done { is_quiet } = drain.check(reading(passed), begin + passed) {
                return (passed, is_quiet);
            }
            passed += STEP;
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn without_open_logs_the_end_is_reported_at_once() {
        assert_eq!(drain(|_| Reading::default()), (Duration::ZERO, false));
    }

    #[test]
    fn a_silent_log_that_belongs_to_the_outcome_is_given_up_after_its_timeout() {
        let reading = |_| Reading {
            evidence: true,
            any: true,
            ..Reading::default()
        };
        assert_eq!(drain(reading), (SILENCE_TIMEOUT + QUIET_PERIOD, true));
    }

    #[test]
    fn a_log_that_belongs_to_the_outcome_is_read_as_long_as_it_takes() {
        let reading = |passed: Duration| Reading {
            progress: passed.as_secs(),
            evidence: passed < seconds(60),
            any: passed < seconds(60),
            ..Reading::default()
        };
        assert_eq!(drain(reading), (seconds(60), false));
    }

    #[test]
    fn a_receiver_that_blocks_readers_does_not_make_them_silent() {
        let reading = |passed: Duration| Reading {
            is_blocked: passed <= seconds(30),
            evidence: true,
            any: true,
            ..Reading::default()
        };
        let given_up = seconds(30) + SILENCE_TIMEOUT + QUIET_PERIOD;
        assert_eq!(drain(reading), (given_up, true));
    }

    #[test]
    fn other_logs_are_read_until_they_are_silent() {
        let reading = |passed: Duration| Reading {
            progress: u64::try_from(passed.min(seconds(2)).as_millis()).unwrap(),
            any: true,
            ..Reading::default()
        };
        assert_eq!(drain(reading), (seconds(2) + QUIET_PERIOD, true));
    }

    #[test]
    fn other_logs_that_are_never_silent_are_given_up() {
        let reading = |passed: Duration| Reading {
            progress: u64::try_from(passed.as_millis()).unwrap(),
            any: true,
            ..Reading::default()
        };
        assert_eq!(drain(reading), (DRAIN_TIMEOUT, false));
    }
}
