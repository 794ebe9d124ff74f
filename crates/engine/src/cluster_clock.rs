//! The clock of a cluster, as tests drive it.

use std::time::Duration;

use jiff::Timestamp;
use longshore_clock::{Clock, ClockError};

use crate::Engine;

/// The clock of a cluster. A manual clock stands still until it is advanced or set.
#[derive(Debug, Clone)]
pub struct ClusterClock(Engine);

impl Engine {
    /// The clock of the cluster.
    #[must_use]
    pub fn clock(&self) -> ClusterClock {
        ClusterClock(self.clone())
    }

    /// The clock for components of the cluster: that of the system, unless the engine has
    /// a manual clock.
    #[must_use]
    pub fn shared_clock(&self) -> Clock {
        self.shared().cloned().unwrap_or_default()
    }
}

impl ClusterClock {
    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Whether the clock stands still until it is advanced or set.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.0.shared().is_some_and(Clock::is_manual)
    }

    /// The clock for controllers of a test: its time, and timers.
    #[must_use]
    pub fn source(&self) -> Clock {
        self.0.shared_clock()
    }

    /// Advances the clock, in one step, and returns the new time. Expired Events have been
    /// removed when it returns. Controllers and nodes act on the new time afterwards, as on
    /// a change of an object: wait for what they do.
    ///
    /// # Errors
    /// The clock is that of the system, or the time would be after the year 9999.
    pub async fn advance(&self, by: Duration) -> Result<Timestamp, ClockError> {
        let now = self.source().advance(by)?;
        self.0.remove_expired_events().await;
        Ok(now)
    }

    /// Sets the clock forward, in one step. See [`ClusterClock::advance`].
    ///
    /// # Errors
    /// The clock is that of the system, or already shows a later time.
    pub async fn set(&self, at: Timestamp) -> Result<(), ClockError> {
        self.source().set(at)?;
        self.0.remove_expired_events().await;
        Ok(())
    }
}
