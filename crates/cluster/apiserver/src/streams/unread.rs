//! Limits the memory for arriving WebSocket messages of all sessions. Messages
//! can be large and are read as a whole.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Semaphore, SemaphorePermit},
};

use crate::limits;

/// The total limit of all WebSockets in bytes.
static TOTAL: Semaphore = Semaphore::const_new(limits::SOCKETS_UNREAD);

/// Bytes of a WebSocket that were read and not yet forwarded.
#[derive(Debug, Default)]
pub(super) struct UnreadBytes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// Reserved for the largest message so far, because the WebSocket's buffer
    /// does not shrink.
    room: Option<SemaphorePermit<'static>>,
}

impl UnreadBytes {
    /// # Errors
    /// Kind `OutOfMemory`: the total limit is exhausted.
    fn add(&self, count: usize) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_add(count);
        let held = state.room.as_ref().map_or(0, SemaphorePermit::num_permits);
        let needed = state.bytes.saturating_sub(limits::SOCKET_UNREAD);
        let Some(more @ 1..) = needed.checked_sub(held) else {
            return Ok(());
        };
        let full = || io::Error::from(io::ErrorKind::OutOfMemory);
        let more = u32::try_from(more).map_err(|_| full())?;
        let more = TOTAL.try_acquire_many(more).map_err(|_| full())?;
        match &mut state.room {
            Some(room) => room.merge(more),
            room @ None => *room = Some(more),
        }
        Ok(())
    }

    /// Records that a message was forwarded.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes = 0;
    }

    /// Records a control frame, which may arrive between the parts of a
    /// message.
    pub(super) fn control_frame(&self, payload: usize) {
        /// Header of a small frame from a client, including its mask.
        const FRAME_HEADER: usize = 6;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_sub(payload + FRAME_HEADER);
    }
}

/// A connection that counts the bytes read from it.
#[derive(Debug)]
pub(super) struct Counted<S> {
    io: S,
    pub(super) unread: Arc<UnreadBytes>,
}

impl<S> Counted<S> {
    pub(super) fn new(io: S) -> Self {
        Self {
            io,
            unread: Arc::default(),
        }
    }

    /// Returns the inner connection.
    pub(super) fn into_inner(self) -> S {
        self.io
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        let count = buffer.filled().len().saturating_sub(before);
        Poll::Ready(self.unread.add(count))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
