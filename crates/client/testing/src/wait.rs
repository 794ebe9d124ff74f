//! Waiting in tests for what another thread, task or process does.
//!
//! Each function tries again until it succeeds, and fails the test after [`LIMIT`]. Tests that
//! wait a fixed time instead are slow on a fast machine and fail on a slow one.
//!
//! ```
//! use std::cell::Cell;
//! use longshore_testing::wait;
//!
//! let calls = Cell::new(0);
//! wait::until("the third call", || {
//!     calls.set(calls.get() + 1);
//!     calls.get() == 3
//! });
//! let value = wait::for_value("a value", || (calls.get() == 3).then_some("ready"));
//! assert_eq!(value, "ready");
//! ```

use std::{
    thread,
    time::{Duration, Instant},
};

/// The time after which a condition that does not hold fails the test.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The time between two attempts.
const INTERVAL: Duration = Duration::from_millis(10);

/// Blocks until `holds` returns true.
///
/// # Panics
/// After [`LIMIT`], with `what` in the message.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for_value(what, || holds().then_some(()));
}

/// Blocks until `attempt` returns a value, and returns the value.
///
/// # Panics
/// After [`LIMIT`], with `what` in the message.
#[track_caller]
pub fn for_value<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        thread::sleep(INTERVAL);
    }
}

/// Waits until `holds` returns true.
///
/// # Panics
/// After [`LIMIT`], with `what` in the message.
pub async fn until_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for_value_async(what, async || holds().await.then_some(())).await;
}

/// Waits until `attempt` returns a value, and returns the value.
///
/// # Panics
/// After [`LIMIT`], with `what` in the message.
pub async fn for_value_async<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    // The clock of the system, because tests may stop tokio's.
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {LIMIT:?} for {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
