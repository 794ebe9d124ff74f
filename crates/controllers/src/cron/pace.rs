//! The clock for schedules.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

/// The clock, and the maximum time between two reads of it.
#[derive(Clone)]
pub(crate) struct Pace {
    /// Returns the current time.
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The maximum time until a CronJob is checked again. Timers use a clock that
    /// ignores changes of the system clock and stops while the machine sleeps.
    pub(crate) max_wait: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            max_wait: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pace({:?})", self.max_wait)
    }
}
