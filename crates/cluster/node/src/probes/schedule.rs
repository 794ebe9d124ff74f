//! The schedule of a probe, and the thresholds of its results. Pure.

use std::{fmt, time::Duration};

use k8s_openapi::api::core::v1::Probe;
use tokio::time::Instant;

/// The delay after the first failed readiness probe, until one succeeds. It doubles up to the
/// period. The kubelet has no such delay, but also probes at each update of the pod's status while
/// the container is not ready, so that a server that listens soon is ready soon.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// The purpose of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        })
    }
}

/// The timing and the thresholds of a probe, and its latest results.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    kind: Kind,
    initial_delay: Duration,
    period: Duration,
    pub(crate) timeout: Duration,
    success_threshold: u32,
    failure_threshold: u32,
    /// The point in the grid of periods that the latest probe belongs to.
    tick: Instant,
    /// The delay of the next attempt of a readiness probe that has not succeeded yet.
    early_retry: Option<Duration>,
    latest: Option<bool>,
    /// The number of consecutive probes with the latest result.
    repeated: u32,
}

impl Schedule {
    /// Creates the schedule for a container that has been running since `since`.
    pub(crate) fn new(kind: Kind, spec: &Probe, since: Instant) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            let value = value.and_then(|value| u64::try_from(value).ok());
            Duration::from_secs(value.unwrap_or(default))
        };
        let threshold = |value: Option<i32>, default: u32| {
            let value = value.and_then(|value| u32::try_from(value).ok());
            value.unwrap_or(default).max(1)
        };
        let initial_delay = seconds(spec.initial_delay_seconds, 0);
        Self {
            kind,
            initial_delay,
            period: seconds(spec.period_seconds, 10).max(Duration::from_secs(1)),
            timeout: seconds(spec.timeout_seconds, 1).max(Duration::from_secs(1)),
            success_threshold: threshold(spec.success_threshold, 1),
            failure_threshold: threshold(spec.failure_threshold, 3),
            tick: since,
            early_retry: (kind == Kind::Readiness).then_some(FIRST_RETRY),
            latest: None,
            repeated: 0,
        }
    }

    /// Returns the time of the first probe. As in the kubelet, the first liveness probe is at the
    /// end of a period, so that a server that needs a moment to listen is not killed by it. Startup
    /// and readiness probes do not wait for this, because other containers or clients wait for
    /// them.
    pub(crate) fn first(&mut self, now: Instant) -> Instant {
        let delay = match self.kind {
            Kind::Liveness => {
                let periods = self.initial_delay.as_secs().div_ceil(self.period.as_secs());
                let periods = u32::try_from(periods.max(1)).unwrap_or(u32::MAX);
                self.period.saturating_mul(periods)
            }
            Kind::Startup | Kind::Readiness => self.initial_delay,
        };
        self.tick = self.tick.checked_add(delay).unwrap_or(now).max(now);
        self.tick
    }

    /// Returns the time of the next probe. As with Go's tickers, periods that have passed during
    /// the previous probe count once.
    pub(crate) fn next(&mut self, now: Instant) -> Instant {
        let next = self.tick + self.period;
        if let Some(delay) = self.early_retry
            && let Some(early) = now.checked_add(delay)
            && early < next
        {
            self.early_retry = Some(delay.saturating_mul(2));
            return early;
        }
        if next > now {
            self.tick = next;
            return next;
        }
        let passed = now.duration_since(self.tick).as_secs() / self.period.as_secs().max(1);
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        self.tick += self.period.saturating_mul(passed);
        now
    }

    /// Records a result. Returns the result if it reaches its threshold.
    pub(crate) fn record(&mut self, success: bool) -> Option<bool> {
        if success {
            self.early_retry = None;
        }
        if self.latest == Some(success) {
            self.repeated = self.repeated.saturating_add(1);
        } else {
            self.latest = Some(success);
            self.repeated = 1;
        }
        let threshold = if success {
            self.success_threshold
        } else {
            self.failure_threshold
        };
        (self.repeated >= threshold).then_some(success)
    }

    /// Returns true if the container is not probed again after this result. A container that failed
    /// restarts first; a container that has started remains started.
    pub(crate) fn ends_with(&self, success: bool) -> bool {
        match self.kind {
            Kind::Startup => true,
            Kind::Liveness => !success,
            Kind::Readiness => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(initial: i32, period: i32, success: i32, failure: i32) -> Probe {
        Probe {
            initial_delay_seconds: Some(initial),
            period_seconds: Some(period),
            success_threshold: Some(success),
            failure_threshold: Some(failure),
            ..Probe::default()
        }
    }

    #[test]
    fn probes_are_due_after_the_initial_delay_and_in_each_period() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut schedule = Schedule::new(Kind::Startup, &spec(5, 10, 1, 3), start);
        assert_eq!(schedule.first(at(0)), at(5));
        assert_eq!(schedule.next(at(5)), at(15));
        // The probe took longer than two periods.
        assert_eq!(schedule.next(at(37)), at(37));
        assert_eq!(schedule.next(at(38)), at(45));
        // The container has started long ago.
        let mut schedule = Schedule::new(Kind::Liveness, &spec(5, 10, 1, 3), start);
        assert_eq!(schedule.first(at(60)), at(60));
        assert_eq!(schedule.next(at(61)), at(70));
    }

    #[test]
    fn a_liveness_probe_is_first_due_at_the_end_of_a_period() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for (initial, first) in [(0, 10), (1, 10), (10, 10), (11, 20)] {
            let mut schedule = Schedule::new(Kind::Liveness, &spec(initial, 10, 1, 1), start);
            assert_eq!(schedule.first(at(0)), at(first));
            assert_eq!(schedule.next(at(first)), at(first + 10));
        }
        // The startup probe has just succeeded.
        let mut schedule = Schedule::new(Kind::Liveness, &spec(0, 10, 1, 3), start);
        assert_eq!(schedule.first(at(25)), at(25));
    }

    #[test]
    fn a_readiness_probe_is_repeated_early_until_it_succeeds() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut schedule = Schedule::new(Kind::Readiness, &spec(0, 1, 1, 3), start);
        assert_eq!(schedule.first(at(0)), at(0));
        for (now, due) in [(0, 100), (100, 300), (300, 700), (700, 1000), (1000, 1800)] {
            schedule.record(false);
            assert_eq!(schedule.next(at(now)), at(due));
        }
        schedule.record(true);
        assert_eq!(schedule.next(at(1800)), at(2000));
        // After a success, only the period counts.
        schedule.record(false);
        assert_eq!(schedule.next(at(2000)), at(3000));
    }

    #[test]
    fn a_result_counts_when_it_reaches_its_threshold() {
        let now = Instant::now();
        let mut schedule = Schedule::new(Kind::Readiness, &spec(0, 1, 2, 3), now);
        let results = [true, true, false, false, true, false, false, false, false];
        let counted: Vec<_> = results
            .iter()
            .map(|result| schedule.record(*result))
            .collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(counted, [None, yes, None, None, None, None, None, no, no]);
    }

    #[test]
    fn which_results_end_a_probe() {
        let ends = |kind| {
            let schedule = Schedule::new(kind, &Probe::default(), Instant::now());
            (schedule.ends_with(true), schedule.ends_with(false))
        };
        assert_eq!(ends(Kind::Startup), (true, true));
        assert_eq!(ends(Kind::Liveness), (false, true));
        assert_eq!(ends(Kind::Readiness), (false, false));
    }

    #[test]
    fn omitted_fields_have_the_defaults_of_the_api() {
        let now = Instant::now();
        let mut schedule = Schedule::new(Kind::Startup, &Probe::default(), now);
        assert_eq!(schedule.timeout, Duration::from_secs(1));
        assert_eq!(schedule.first(now), now);
        assert_eq!(schedule.next(now), now + Duration::from_secs(10));
        let counted: Vec<_> = (0..3).map(|_| schedule.record(false)).collect();
        assert_eq!(counted, [None, None, Some(false)]);
    }
}
