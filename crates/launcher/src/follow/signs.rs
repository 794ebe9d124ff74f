//! What the readers of logs tell the follower beside lines.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Signs of life, of the readers and of the cluster.
#[derive(Debug, Default)]
pub(super) struct Signs {
    given: AtomicU64,
    /// Since when nobody answers.
    away: Mutex<Option<Instant>>,
}

impl Signs {
    /// A line has come, or it is worth while to wait for one.
    pub(super) fn give(&self) {
        self.given.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were: who waits for readers waits as long as it grows.
    pub(super) fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Whether the cluster answered just now.
    pub(super) fn reaches(&self, answered: bool) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        match answered {
            true => *away = None,
            false => {
                away.get_or_insert_with(Instant::now);
            }
        }
    }

    /// How long nobody has answered.
    pub(super) fn away(&self) -> Duration {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        away.map_or(Duration::ZERO, |since| since.elapsed())
    }
}
