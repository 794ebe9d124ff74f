//! The time limit of an attempt: a warning, SIGTERM at the limit, and SIGKILL after the grace
//! period. The time is an argument.

use std::time::{Duration, Instant};

use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::restarts::{TaskLimit, WarningSignal};

/// The exit code of a command that exceeded its time limit, as with `timeout`.
pub(in super::super) const OVERDUE: i32 = 124;

/// An action of the time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Timing {
    /// Send the warning.
    Warn(WarningSignal),
    /// Ask the command to end.
    End,
    /// Kill the command.
    Kill,
}

/// The time limit of an attempt that has begun.
#[derive(Debug)]
pub(in super::super) struct Timer {
    limit: TaskLimit,
    grace: Duration,
    begun: Instant,
    /// The last action.
    last: Option<Timing>,
}

impl Timer {
    pub(in super::super) fn new(limit: TaskLimit, grace: Duration, begun: Instant) -> Self {
        Self {
            limit,
            grace,
            begun,
            last: None,
        }
    }

    /// The next action and its time.
    fn next(&self) -> Option<(Timing, Instant)> {
        let end = Duration::from_secs(self.limit.seconds);
        let (timing, after) = match (self.last, self.limit.warning) {
            (None, Some(warning)) => (
                Timing::Warn(self.limit.signal),
                end.saturating_sub(Duration::from_secs(warning)),
            ),
            (None | Some(Timing::Warn(_)), _) => (Timing::End, end),
            (Some(Timing::End), _) => (Timing::Kill, end.saturating_add(self.grace)),
            (Some(Timing::Kill), _) => return None,
        };
        // A limit beyond the clock's range never applies.
        Some((timing, self.begun.checked_add(after)?))
    }

    /// The time of the next action.
    pub(in super::super) fn due(&self) -> Option<Instant> {
        self.next().map(|(_, due)| due)
    }

    /// The action that is due now. Each action is returned once.
    pub(in super::super) fn at(&mut self, now: Instant) -> Option<Timing> {
        let (timing, due) = self.next()?;
        (due <= now).then(|| {
            self.last = Some(timing);
            timing
        })
    }

    /// Returns true if the limit was exceeded.
    pub(in super::super) fn is_over(&self) -> bool {
        matches!(self.last, Some(Timing::End | Timing::Kill))
    }
}

/// The number of a signal.
pub(super) fn number(signal: WarningSignal) -> i32 {
    match signal {
        WarningSignal::Hup => SIGHUP,
        WarningSignal::Int => SIGINT,
        WarningSignal::Quit => SIGQUIT,
        WarningSignal::Term => SIGTERM,
        WarningSignal::Usr1 => SIGUSR1,
        WarningSignal::Usr2 => SIGUSR2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(warning: Option<u64>) -> Vec<(u64, Timing)> {
        let begun = Instant::now();
        let limit = TaskLimit {
            seconds: 60,
            warning,
            signal: WarningSignal::Usr2,
        };
        let mut timer = Timer::new(limit, Duration::from_secs(5), begun);
        let mut found = Vec::new();
        for second in 0..=100 {
            let now = begun + Duration::from_secs(second);
            while let Some(timing) = timer.at(now) {
                assert_eq!(timer.is_over(), second >= 60);
                found.push((second, timing));
            }
        }
        found
    }

    #[test]
    fn a_warning_the_end_and_the_kill_are_demanded_once() {
        let warn = Timing::Warn(WarningSignal::Usr2);
        let ends = [(60, Timing::End), (65, Timing::Kill)];
        assert_eq!(demands(None), ends);
        assert_eq!(demands(Some(10)), [&[(50, warn)], &ends[..]].concat());
    }
}
