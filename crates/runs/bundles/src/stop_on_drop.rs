//! Stops work on other threads when nothing waits for it any more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Sets the flag, which the work checks, when it is dropped.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
