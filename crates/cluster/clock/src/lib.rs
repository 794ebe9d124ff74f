//! The clock of an embedded cluster: the system's clock, or a manual clock, whose time
//! stands still until a test advances it.
//!
//! ```
//! use std::time::Duration;
//! use longshore_clock::Clock;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), longshore_clock::ClockError> {
//! let clock = Clock::manual("2026-01-01T02:59:00Z".parse().unwrap());
//! let begin = clock.instant();
//! clock.advance(Duration::from_secs(60))?;
//! // The time has come.
//! clock.sleep_after(begin, Duration::from_secs(60)).await;
//! assert_eq!(clock.now().to_string(), "2026-01-01T03:00:00Z");
//! # Ok(())
//! # }
//! ```

mod busy;
mod error;
mod heartbeats;
mod manual;
mod work;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

pub use crate::{
    busy::Busy,
    error::{ClockError, SettleError},
    heartbeats::Heartbeat,
    work::{Component, Newest},
};

use crate::manual::Manual;

/// The longest time that a timer waits: an `Instant` has a maximum.
const FAR_FUTURE: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// The system's clock, or a manual clock. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<Manual>>);

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// A clock that shows `start` until it is advanced or set.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Some(Arc::new(Manual::new(start))))
    }

    /// Returns true if the clock is manual.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.0.is_some()
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            None => Timestamp::now(),
            Some(manual) => manual.now(),
        }
    }

    /// Returns the current time as an instant. Compare instants of a manual clock only with each
    /// other, not with `Instant::now()`.
    #[must_use]
    pub fn instant(&self) -> Instant {
        match &self.0 {
            None => Instant::now(),
            Some(manual) => manual.instant(),
        }
    }

    /// Waits until an instant of this clock. A manual clock that is advanced past the instant ends
    /// the wait at once.
    pub async fn sleep_until(&self, at: Instant) {
        match &self.0 {
            None => tokio::time::sleep_until(at).await,
            Some(manual) => manual.sleep_until(at).await,
        }
    }

    /// Waits for a duration of this clock.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_after(self.instant(), duration).await;
    }

    /// Waits for a duration after work that began at `begin`, an instant of this clock.
    ///
    /// A manual clock that was advanced during the work has counted that time: with it, the
    /// duration is counted from `begin`. With the system's clock, it is counted from now.
    pub async fn sleep_after(&self, begin: Instant, duration: Duration) {
        self.sleep_until(self.due(begin, duration)).await;
    }

    /// Waits like [`Clock::sleep_after`], and marks the work that follows like [`Clock::busy`]. The
    /// task is always counted as either waiting or working.
    pub async fn sleep_before_work(
        &self,
        begin: Instant,
        duration: Duration,
        what: &'static str,
    ) -> Busy {
        let at = self.due(begin, duration);
        let Some(manual) = &self.0 else {
            tokio::time::sleep_until(at).await;
            return self.busy(what);
        };
        let _timer = manual.timer(at).await;
        self.busy(what)
    }

    /// Returns when [`Clock::sleep_after`] ends.
    #[must_use]
    pub fn due(&self, begin: Instant, duration: Duration) -> Instant {
        let begin = match self.is_manual() {
            true => begin,
            false => Instant::now(),
        };
        begin + duration.min(FAR_FUTURE)
    }

    /// The margin to add to a timer that was calculated from [`Clock::now`], so that the calculated
    /// time has passed when the timer fires. The system's timers and its time use different clocks.
    #[must_use]
    pub fn margin(&self) -> Duration {
        match self.is_manual() {
            true => Duration::ZERO,
            false => Duration::from_millis(1),
        }
    }

    /// The current time in nanoseconds, for names of objects. A manual clock that stands
    /// still returns a higher number each time.
    #[must_use]
    pub fn unique_nanoseconds(&self) -> i128 {
        match &self.0 {
            None => Timestamp::now().as_nanosecond(),
            Some(manual) => manual.unique_nanoseconds(),
        }
    }

    /// Advances a manual clock, in one step, and returns the new time.
    ///
    /// # Errors
    /// The clock is the system's clock, or the time would be after the year 9999.
    pub fn advance(&self, by: Duration) -> Result<Timestamp, ClockError> {
        let manual = self.0.as_ref().ok_or(ClockError::NotManual)?;
        manual.advance(by)
    }

    /// Sets a manual clock forward, in one step.
    ///
    /// # Errors
    /// The clock is the system's clock, or already shows a later time.
    pub fn set(&self, at: Timestamp) -> Result<(), ClockError> {
        let manual = self.0.as_ref().ok_or(ClockError::NotManual)?;
        manual.set(at)
    }

    /// Registers a component that sends heartbeats, on which [`Clock::heartbeats`] waits.
    #[must_use]
    pub fn heartbeat(&self) -> Heartbeat {
        Heartbeat::new(self.clone())
    }

    /// Waits until no heartbeat is due at the current time of a manual clock. Components that check
    /// others by their heartbeats call this after the clock was advanced, for example by an hour.
    /// Returns at once with the system's clock.
    pub async fn heartbeats(&self) {
        if let Some(manual) = &self.0 {
            manual.heartbeats.sent(manual.instant()).await;
        }
    }

    /// Marks work of the component `what` until the returned value is dropped. See
    /// [`Clock::sleep_before_work`] for work that follows a delay.
    #[must_use]
    pub fn busy(&self, what: &'static str) -> Busy {
        Busy::new(self.0.clone(), what)
    }

    /// Adds a component whose work [`Clock::pending`] reports until it is dropped. Has no effect
    /// with the system's clock.
    pub fn add(&self, component: Weak<dyn Component>) {
        if let Some(manual) = &self.0 {
            manual.work.add(component);
        }
    }

    /// Returns the work that components have to do at the current time of a manual clock, one
    /// sentence each: due heartbeats and timers, marked work, and the work of the added components.
    /// `newest` returns the revision of the newest change of a kind. Always empty with the system's
    /// clock.
    #[must_use]
    pub fn pending(&self, newest: &Newest<'_>) -> Vec<String> {
        match &self.0 {
            Some(manual) => manual.pending(newest),
            None => Vec::new(),
        }
    }

    /// Returns a number that grows whenever work begins or ends. Work may move from one component
    /// to another while [`Clock::pending`] asks them in turn. If the number is the same afterwards,
    /// no work was missed.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.0.as_ref().map_or(0, |manual| manual.work.steps())
    }
}

#[cfg(test)]
mod tests;
