//! Waits that double.

use std::time::Duration;

use tokio::time::Instant;

/// First and longest wait before something refused is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));

/// Waits that double.
#[derive(Debug, Default)]
pub(super) struct Retry {
    pub(super) at: Option<Instant>,
    delay: Duration,
}

impl Retry {
    pub(super) fn again(&mut self) {
        self.delay = (self.delay * 2).clamp(RETRY.0, RETRY.1);
        self.at = Some(Instant::now() + self.delay);
    }

    pub(super) fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at <= Instant::now())
    }
}
