//! How long a Job waits before it replaces a failed pod.

use std::time::Duration;

use jiff::Timestamp;

/// The first wait and the longest; each failure doubles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BackoffLimits {
    /// The wait after the first failure: 10 s in Kubernetes.
    pub(crate) first: Duration,
    /// The longest wait: 10 minutes in Kubernetes.
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
    /// What remains of the wait after `failures` failures in a row, the last
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

/// Failures of a Job's pods since the last success.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// How many.
    pub(crate) count: u32,
    /// When the last one was.
    pub(crate) last: Option<Timestamp>,
}

impl Failures {
    /// After a pod that failed at `at`.
    pub(crate) fn failed(self, at: Timestamp) -> Self {
        Self {
            count: self.count.saturating_add(1),
            last: self.last.max(Some(at)),
        }
    }

    /// What remains of the wait.
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
    fn doubles_up_to_ten_minutes() {
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
    fn counts_the_time_that_has_passed() {
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
        // A clock behind the pod's: the whole wait, no panic.
        assert_eq!(
            failures
                .remaining(limits, at("2026-01-01T00:00:00Z"))
                .as_secs(),
            10
        );
        assert_eq!(Failures::default().remaining(limits, last), Duration::ZERO);
    }
}
