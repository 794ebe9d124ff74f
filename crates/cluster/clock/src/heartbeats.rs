//! The heartbeats that are due when a manual clock is advanced.
//!
//! A node renews its Lease every ten seconds. When the clock is advanced by an hour, the
//! node has been silent for an hour at that moment, although it works. Components that
//! check nodes wait until the heartbeats that are due have been sent.

use std::{collections::BTreeMap, time::Duration};

use tokio::{sync::watch, time::Instant};

use crate::Clock;

/// The times at which the next heartbeat of each component is due.
#[derive(Debug, Default)]
pub(crate) struct Heartbeats(watch::Sender<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    due: BTreeMap<u64, Instant>,
}

impl Heartbeats {
    fn add(&self, due: Instant) -> u64 {
        let mut id = 0;
        self.0.send_modify(|table| {
            table.last = table.last.saturating_add(1);
            id = table.last;
            table.due.insert(id, due);
        });
        id
    }

    fn set(&self, id: u64, due: Instant) {
        self.0.send_modify(|table| {
            table.due.insert(id, due);
        });
    }

    fn remove(&self, id: u64) {
        self.0.send_modify(|table| {
            table.due.remove(&id);
        });
    }

    /// Returns true if a heartbeat is due at `now`.
    pub(crate) fn are_due(&self, now: Instant) -> bool {
        self.0.borrow().due.values().any(|due| *due <= now)
    }

    /// Waits until no heartbeat is due at `now`.
    pub(crate) async fn sent(&self, now: Instant) {
        let mut table = self.0.subscribe();
        // Fails if the sender is dropped, which `self` holds.
        let _ = table
            .wait_for(|table| table.due.values().all(|due| *due > now))
            .await;
    }
}

/// A component that sends heartbeats, until it is dropped. The first heartbeat is due at once.
#[derive(Debug)]
pub struct Heartbeat {
    clock: Clock,
    id: u64,
}

impl Heartbeat {
    pub(crate) fn new(clock: Clock) -> Self {
        let id = match &clock.0 {
            Some(manual) => manual.heartbeats.add(manual.instant()),
            None => 0,
        };
        Self { clock, id }
    }

    /// States that a heartbeat was sent at `sent`, an instant of the clock, and waits until
    /// the next is due.
    pub async fn sleep(&self, sent: Instant, interval: Duration) {
        let due = self.clock.due(sent, interval);
        if let Some(manual) = &self.clock.0 {
            manual.heartbeats.set(self.id, due);
        }
        self.clock.sleep_until(due).await;
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(manual) = &self.clock.0 {
            manual.heartbeats.remove(self.id);
        }
    }
}
