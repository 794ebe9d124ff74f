//! The clock for schedules.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_clock::Clock;

/// The clock, and the maximum time between two reads of it.
#[derive(Clone)]
pub(crate) struct Pace {
    /// Returns the current time.
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The maximum time until a CronJob is checked again. Timers ignore changes of the system's
    /// clock and stop while the machine sleeps.
    pub(crate) max_wait: Duration,
}

impl Pace {
    /// Returns the pace of a cluster's clock.
    pub(crate) fn of(clock: Clock) -> Self {
        Self {
            now: Arc::new(move || clock.now()),
            max_wait: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pace({:?})", self.max_wait)
    }
}
