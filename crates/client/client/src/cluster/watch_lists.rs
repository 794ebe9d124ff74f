//! Whether a server supports watch lists, as far as it is known.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known about a cluster's watch lists.
#[derive(Default)]
pub(crate) struct WatchLists {
    work: AtomicBool,
    refused: AtomicBool,
}

impl WatchLists {
    /// Whether the server does not support watch lists.
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
