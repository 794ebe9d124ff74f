//! Bounds what the messages of websockets take while they arrive, of all
//! sessions together: a message can be large, and it is read whole.

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

/// Room for all websockets, in bytes.
static ROOM: Semaphore = Semaphore::const_new(limits::SOCKETS_UNREAD);

/// What of a websocket has been read and is not handed on.
#[derive(Debug, Default)]
pub(super) struct Unread(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    /// For the largest message so far: the websocket's buffer does not shrink.
    room: Option<SemaphorePermit<'static>>,
}

impl Unread {
    /// # Errors
    /// Kind `OutOfMemory`: there is no room for a message that large.
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
        let more = ROOM.try_acquire_many(more).map_err(|_| full())?;
        match &mut state.room {
            Some(room) => room.merge(more),
            room @ None => *room = Some(more),
        }
        Ok(())
    }

    /// A message was handed on.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes = 0;
    }

    /// A control frame was read, perhaps between the parts of a message.
    pub(super) fn control_frame(&self, payload: usize) {
        /// The head of a small frame from a client, with its mask.
        const HEAD: usize = 6;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_sub(payload + HEAD);
    }
}

/// A connection whose bytes are counted as they are read.
#[derive(Debug)]
pub(super) struct Counted<S> {
    io: S,
    pub(super) unread: Arc<Unread>,
}

impl<S> Counted<S> {
    pub(super) fn new(io: S) -> Self {
        Self {
            io,
            unread: Arc::default(),
        }
    }

    /// The connection itself.
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
