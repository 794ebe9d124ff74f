//! Detects idle sessions.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use crate::limits;

/// The time of the last activity.
#[derive(Debug)]
pub(super) struct Activity(Mutex<Instant>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Records activity.
    pub(super) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Resolves when the session has been idle for too long.
    pub(super) async fn idle(&self) {
        self.idle_for(limits::SESSION_IDLE).await;
    }

    async fn idle_for(&self, most: Duration) {
        loop {
            let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let until = since + most;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_is_idle_only_after_the_timeout() {
        let (activity, begin) = (Activity::new(), Instant::now());
        let (most, pause) = (Duration::from_millis(80), Duration::from_millis(40));
        let note = async {
            tokio::time::sleep(pause).await;
            activity.note();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = activity.idle_for(most) => {}
            () = note => {}
        }
        assert!(begin.elapsed() >= most + pause);
    }
}
