//! The clock that schedules are compared with.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

/// The clock, and how often it is read at least.
#[derive(Clone)]
pub(crate) struct Pace {
    /// The present.
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The longest time until a CronJob is looked at again. Waits are measured
    /// by a clock that does not follow changes of the system clock, and stops
    /// while the machine sleeps.
    pub(crate) longest_wait: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            longest_wait: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pace({:?})", self.longest_wait)
    }
}
