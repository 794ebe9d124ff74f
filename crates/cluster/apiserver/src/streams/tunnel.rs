//! A byte stream over a WebSocket, which carries tunnelled SPDY.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use futures::{Sink as _, Stream as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::frame::coding::CloseCode},
};

use super::{
    socket::{close_code, close_frame},
    unread::Counted,
};
use crate::limits;

/// Reads and writes the payloads of binary messages.
pub(super) struct Tunnel<S> {
    socket: WebSocketStream<Counted<S>>,
    left: Bytes,
    /// The close code to send if the client violated the WebSocket protocol.
    failed: Option<CloseCode>,
}

impl<S> Tunnel<S> {
    pub(super) fn new(socket: WebSocketStream<Counted<S>>) -> Self {
        Self {
            socket,
            left: Bytes::new(),
            failed: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.left.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(context)) {
                Some(Ok(Message::Binary(bytes))) => self.left = bytes,
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Err(error)) => {
                    self.failed = close_code(&error);
                    return Poll::Ready(Ok(()));
                }
                Some(Ok(Message::Text(_))) => self.socket.get_ref().unread.clear(),
                Some(Ok(other)) => self.socket.get_ref().unread.control_frame(other.len()),
            }
        }
        let count = self.left.len().min(buffer.remaining());
        buffer.put_slice(&self.left[..count]);
        self.left.advance(count);
        if self.left.is_empty() {
            self.socket.get_ref().unread.clear();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = Pin::new(&mut self.socket);
        ready!(socket.as_mut().poll_ready(context)).map_err(io::Error::other)?;
        let bytes = &bytes[..bytes.len().min(limits::STREAM_CHUNK)];
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        socket.start_send(message).map_err(io::Error::other)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        flushed.map_err(io::Error::other)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(code) = self.failed.take() {
            let close = Message::Close(Some(close_frame(code)));
            // The closing handshake handles the rest.
            let _ = Pin::new(&mut self.socket).start_send(close);
        }
        let closed = Pin::new(&mut self.socket).poll_close(context);
        closed.map_err(io::Error::other)
    }
}
