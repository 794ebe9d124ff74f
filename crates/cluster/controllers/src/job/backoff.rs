//! The delay before a Job replaces a failed pod.

use std::time::Duration;

use jiff::Timestamp;

/// The initial and the maximum delay. Each failure doubles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BackoffLimits {
    /// The delay after the first failure; 10 s in Kubernetes.
    pub(crate) first: Duration,
    /// The maximum delay; 10 minutes in Kubernetes.
    pub(crate) longest: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(10),
            longest: Duration::from_secs(600),
        }
    }
}

impl BackoffLimits {
    /// Returns the remaining delay after `failures` consecutive failures, the last
    /// of them at `last`.
    pub(crate) fn remaining(self, failures: u32, last: Timestamp, now: Timestamp) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let factor = 2_u32.saturating_pow(failures - 1);
        let wait = self.first.saturating_mul(factor).min(self.longest);
        let passed = Duration::try_from(now.duration_since(last)).unwrap_or(Duration::ZERO);
        wait.saturating_sub(passed)
    }
}

/// The failures of a Job's pods since the last success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// The number of failures.
    pub(crate) count: u32,
    /// The time of the last failure.
    pub(crate) last: Option<Timestamp>,
}

impl Failures {
    /// Adds a pod that failed at `at`.
    pub(crate) fn failed(self, at: Timestamp) -> Self {
        Self {
            count: self.count.saturating_add(1),
            last: self.last.max(Some(at)),
        }
    }

    /// Returns the remaining delay.
    pub(crate) fn remaining(self, limits: BackoffLimits, now: Timestamp) -> Duration {
        self.last.map_or(Duration::ZERO, |last| {
            limits.remaining(self.count, last, now)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_delay_doubles_up_to_ten_minutes() {
        let last: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let limits = BackoffLimits::default();
        let table = [
            (0, 0),
            (1, 10),
            (2, 20),
            (3, 40),
            (6, 320),
            (7, 600),
            (8, 600),
            (u32::MAX, 600),
        ];
        for (failures, seconds) in table {
            assert_eq!(
                limits.remaining(failures, last, last).as_secs(),
                seconds,
                "{failures}"
            );
        }
    }

    #[test]
    fn elapsed_time_is_subtracted() {
        let last: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let failures = Failures::default().failed(last);
        let limits = BackoffLimits::default();
        assert_eq!(
            failures
                .remaining(limits, at("2026-01-02T00:00:04Z"))
                .as_secs(),
            6
        );
        assert_eq!(
            failures
                .remaining(limits, at("2026-01-02T00:01:00Z"))
                .as_secs(),
            0
        );
        // If the clock is behind the pod's clock, the whole delay remains, without
        // a panic.
        assert_eq!(
            failures
                .remaining(limits, at("2026-01-01T00:00:00Z"))
                .as_secs(),
            10
        );
        assert_eq!(Failures::default().remaining(limits, last), Duration::ZERO);
    }
}
