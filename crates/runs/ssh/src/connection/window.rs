//! Flow control: the number of bytes that the client accepts on a channel.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The window of a channel: its sender takes bytes from it, and the client adds to it.
#[derive(Debug)]
pub(super) struct Window {
    free: Mutex<u32>,
    grown: Notify,
}

impl Window {
    pub(super) fn new(free: u32) -> Self {
        Self {
            free: Mutex::new(free),
            grown: Notify::new(),
        }
    }

    /// Adds bytes; `None` if the client exceeds the protocol's limit.
    pub(super) fn grow(&self, bytes: u32) -> Option<()> {
        let mut free = self.free.lock();
        *free = free.checked_add(bytes)?;
        drop(free);
        self.grown.notify_one();
        Some(())
    }

    /// Waits for a free byte, and takes at most `most` bytes. Must not be called concurrently.
    pub(super) async fn take(&self, most: usize) -> usize {
        loop {
            {
                let mut free = self.free.lock();
                let taken = most.min(*free as usize);
                if taken > 0 {
                    *free = free.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX));
                    return taken;
                }
            }
            // A growth after the lock was released is not lost: its permit is stored.
            self.grown.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_sender_waits_until_the_client_accepts_more() {
        let window = Arc::new(Window::new(10));
        assert_eq!(window.take(8).await, 8);
        assert_eq!(window.take(8).await, 2);
        let waiting = tokio::spawn({
            let window = window.clone();
            async move { window.take(8).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        window.grow(3).unwrap();
        assert_eq!(waiting.await.unwrap(), 3);
        assert_eq!(window.grow(u32::MAX), Some(()));
        assert_eq!(window.grow(1), None);
    }
}
