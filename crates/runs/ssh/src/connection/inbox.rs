//! The bytes of the client that a channel's task has not read yet. The window of the channel limits
//! their number and the memory for them, however small the client's messages are.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The maximum number of bytes in a single read of a task, so that the window is adjusted early.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    bytes: BytesMut,
    /// The client sends no more bytes.
    is_complete: bool,
    /// The task reads no more bytes.
    is_unread: bool,
}

/// The connection's end.
#[derive(Debug)]
pub(super) struct Inlet(Arc<Shared>);

/// The end for the channel's task.
#[derive(Debug)]
pub(super) struct Outlet(Arc<Shared>);

/// Both ends.
pub(super) fn inbox() -> (Inlet, Outlet) {
    let shared = Arc::<Shared>::default();
    (Inlet(shared.clone()), Outlet(shared))
}

impl Inlet {
    /// Appends bytes. A task that has ended discards them.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut state = self.0.state.lock();
        if !state.is_unread {
            state.bytes.extend_from_slice(bytes);
            drop(state);
            self.0.changed.notify_one();
        }
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.0.state.lock().is_complete = true;
        self.0.changed.notify_one();
    }
}

impl Outlet {
    /// The next bytes, or `None` after the last. Must not be called concurrently.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.0.state.lock();
                let length = state.bytes.len().min(PIECE);
                if length > 0 {
                    return Some(state.bytes.split_to(length).freeze());
                }
                if state.is_complete {
                    return None;
                }
            }
            // A change after the lock was released is not lost: its permit is stored.
            self.0.changed.notified().await;
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_unread = true;
        state.bytes = BytesMut::new();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn bytes_arrive_in_their_order_and_end() {
        let (inlet, mut outlet) = inbox();
        let text: Vec<u8> = (0..3 * PIECE).map(|index| (index % 251) as u8).collect();
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            while let Some(bytes) = outlet.next().await {
                assert!(bytes.len() <= PIECE);
                read.extend_from_slice(&bytes);
            }
            read
        });
        for part in text.chunks(1000) {
            inlet.push(part);
            tokio::task::yield_now().await;
        }
        drop(inlet);
        assert_eq!(reading.await.unwrap(), text);
    }

    #[test]
    fn small_messages_need_no_more_memory_than_their_bytes() {
        let (inlet, outlet) = inbox();
        for _ in 0..1 << 20 {
            inlet.push(b"x");
            inlet.push(b"");
        }
        let capacity = || inlet.0.state.lock().bytes.capacity();
        assert!(capacity() <= 4 << 20, "{}", capacity());
        drop(outlet);
        inlet.push(b"x");
        assert_eq!(capacity(), 0);
    }
}
