//! Remembers if a server supports watch lists.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The support of a cluster for watch lists, as known from its responses.
#[derive(Default)]
pub(crate) struct WatchLists {
    work: AtomicBool,
    refused: AtomicBool,
}

impl WatchLists {
    /// Returns true if the server is known not to support watch lists.
    pub(crate) fn are_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// Records that a watch list succeeded.
    pub(crate) fn set_working(&self) {
        self.work.store(true, Relaxed);
    }

    /// Records that a watch list was rejected. Ignored if another one has succeeded before.
    pub(crate) fn set_refused(&self) {
        if !self.work.load(Relaxed) {
            self.refused.store(true, Relaxed);
        }
    }
}
