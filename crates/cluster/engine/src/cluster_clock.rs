//! The clock of a cluster, with the methods by which tests control it.

use std::time::Duration;

use jiff::Timestamp;
use longshore_clock::{Clock, ClockError, SettleError};
use tokio::time::Instant;

use crate::Engine;

/// Interval at which [`ClusterClock::settle`] checks the components.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// The longest timeout: an `Instant` has a maximum.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The clock of a cluster. A manual clock stands still until it is advanced or set.
#[derive(Debug, Clone)]
pub struct ClusterClock(Engine);

impl Engine {
    /// The clock of the cluster.
    #[must_use]
    pub fn clock(&self) -> ClusterClock {
        ClusterClock(self.clone())
    }

    /// The clock for components of the cluster: the engine's manual clock, or the system's clock if
    /// it has none.
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

    /// Returns true if the clock is manual.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.0.shared().is_some_and(Clock::is_manual)
    }

    /// The clock for controllers of a test: current time and timers.
    #[must_use]
    pub fn source(&self) -> Clock {
        self.0.shared_clock()
    }

    /// Advances the clock, in one step, and returns the new time. Expired Events have been removed
    /// when it returns. Controllers and nodes react to the new time afterwards, as they do to a
    /// change of an object: wait for the expected result, or until the cluster has settled.
    ///
    /// # Errors
    /// The clock is the system's clock, or the time would be after the year 9999.
    pub async fn advance(&self, by: Duration) -> Result<Timestamp, ClockError> {
        let now = self.source().advance(by)?;
        self.0.remove_expired_events().await;
        Ok(now)
    }

    /// Sets the clock forward, in one step. See [`ClusterClock::advance`].
    ///
    /// # Errors
    /// The clock is the system's clock, or already shows a later time.
    pub async fn set(&self, at: Timestamp) -> Result<(), ClockError> {
        self.source().set(at)?;
        self.0.remove_expired_events().await;
        Ok(())
    }
    /// Waits until the controllers of the cluster have no work at the current time: they have
    /// processed all changes of objects, including their own, and none of their delays has passed.
    /// Containers use the system's clock, so this does not wait for them. It waits for a retry
    /// after an error if the retry is due within a second.
    ///
    /// # Errors
    /// The clock is the system's clock, or the controllers still had work to do after `timeout`,
    /// which the system's clock measures.
    pub async fn settle(&self, timeout: Duration) -> Result<(), SettleError> {
        let clock = self.source();
        if !clock.is_manual() {
            return Err(ClockError::NotManual.into());
        }
        let end = Instant::now() + timeout.min(MAX_TIMEOUT);
        let mut last = None;
        loop {
            let before = self.progress(&clock);
            let mut pending = clock.pending(&|group, kind| self.newest(group, kind));
            if self.0.has_deferred_cleanup() {
                pending.push("a deleted CustomResourceDefinition ends".to_owned());
            }
            // Work can be moving from a component that was already asked to one that was not.
            let is_calm = pending.is_empty() && before == self.progress(&clock);
            if is_calm && last == Some(before) {
                return Ok(());
            }
            if Instant::now() >= end {
                let pending = match pending.is_empty() {
                    true => "objects still change".to_owned(),
                    false => pending.join(", "),
                };
                return Err(SettleError::Timeout { timeout, pending });
            }
            last = is_calm.then_some(before);
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Numbers that grow with each change of an object, and whenever work begins or ends.
    fn progress(&self, clock: &Clock) -> (u64, u64) {
        (self.0.revision(), clock.steps())
    }

    /// The revision of the newest change of a kind.
    fn newest(&self, group: &str, kind: &str) -> u64 {
        let state = self.0.state();
        let id = state.kinds.builtin_id(group, kind);
        id.map_or(0, |id| state.table(id).newest())
    }
}
