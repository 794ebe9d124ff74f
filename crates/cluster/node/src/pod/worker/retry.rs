//! Exponential backoff.

use std::time::Duration;

use tokio::time::Instant;

/// Delay before the first retry of a rejected request.
const MIN_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay between retries.
const MAX_DELAY: Duration = Duration::from_secs(20);

/// Exponential backoff.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pub(super) at: Option<Instant>,
    delay: Duration,
}

impl Retry {
    pub(super) fn back_off(&mut self) {
        self.delay = (self.delay * 2).clamp(MIN_DELAY, MAX_DELAY);
        self.at = Some(Instant::now() + self.delay);
    }

    pub(super) fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }
}
