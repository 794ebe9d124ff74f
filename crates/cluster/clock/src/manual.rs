//! A clock whose time stands still until it is advanced.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};

use crate::{
    ClockError,
    heartbeats::Heartbeats,
    work::{Ledger, Newest, Timer},
};

/// A manual clock. Its time is the start plus the sum of all advances.
#[derive(Debug)]
pub(crate) struct Manual {
    start: Timestamp,
    first: Instant,
    advanced: watch::Sender<Duration>,
    last_unique: Mutex<i128>,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) work: Ledger,
}

impl Manual {
    pub(crate) fn new(start: Timestamp) -> Self {
        Self {
            start,
            first: Instant::now(),
            advanced: watch::Sender::new(Duration::ZERO),
            last_unique: Mutex::new(i128::MIN),
            heartbeats: Heartbeats::default(),
            work: Ledger::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.at(*self.advanced.borrow())
    }

    fn at(&self, advanced: Duration) -> Timestamp {
        // `advance` has checked the range.
        self.start.checked_add(advanced).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn instant(&self) -> Instant {
        self.first + *self.advanced.borrow()
    }

    pub(crate) async fn sleep_until(&self, at: Instant) {
        drop(self.timer(at).await);
    }

    /// Waits until an instant. The timer counts as due until it is dropped.
    pub(crate) async fn timer(&self, at: Instant) -> Timer<'_> {
        let timer = self.work.timer(at);
        let mut advanced = self.advanced.subscribe();
        // Fails if the sender is dropped, which `self` holds.
        let _ = advanced
            .wait_for(|advanced| self.first + *advanced >= at)
            .await;
        timer
    }

    pub(crate) fn pending(&self, newest: &Newest<'_>) -> Vec<String> {
        let now = self.instant();
        let mut pending = self.work.pending(now, newest);
        if self.heartbeats.are_due(now) {
            pending.push("a heartbeat is due".to_owned());
        }
        pending
    }

    pub(crate) fn unique_nanoseconds(&self) -> i128 {
        let mut last = self
            .last_unique
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = self.now().as_nanosecond().max(last.saturating_add(1));
        *last
    }

    pub(crate) fn advance(&self, by: Duration) -> Result<Timestamp, ClockError> {
        let mut result = Ok(self.start);
        self.advanced.send_if_modified(|advanced| {
            let total = advanced.checked_add(by);
            let to = total.and_then(|total| Some((total, self.start.checked_add(total).ok()?)));
            let Some((total, to)) = to else {
                let now = self.at(*advanced);
                result = Err(ClockError::OutOfRange { now, by });
                return false;
            };
            result = Ok(to);
            std::mem::replace(advanced, total) != total
        });
        result
    }

    pub(crate) fn set(&self, to: Timestamp) -> Result<(), ClockError> {
        let mut result = Ok(());
        self.advanced.send_if_modified(|advanced| {
            let now = self.at(*advanced);
            if to < now {
                result = Err(ClockError::Backward { now, to });
                return false;
            }
            let total: SignedDuration = to.duration_since(self.start);
            // `total` is not negative, because `to` is not before `now`.
            let total = Duration::try_from(total).unwrap_or_default();
            std::mem::replace(advanced, total) != total
        });
        result
    }
}
