//! Whether a server has watch lists, as far as is known.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is known of a cluster's watch lists.
#[derive(Default)]
pub(crate) struct WatchLists {
    work: AtomicBool,
    refused: AtomicBool,
}

impl WatchLists {
    /// Whether the server does not have them.
    pub(crate) fn are_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// One has worked.
    pub(crate) fn set_working(&self) {
        self.work.store(true, Relaxed);
    }

    /// One was refused; that does not count once another has worked.
    pub(crate) fn set_refused(&self) {
        if !self.work.load(Relaxed) {
            self.refused.store(true, Relaxed);
        }
    }
}
