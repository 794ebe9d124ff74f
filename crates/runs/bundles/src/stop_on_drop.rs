//! Stops work on other threads when its result is not needed any more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Sets the flag when it is dropped. The work checks the flag.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
