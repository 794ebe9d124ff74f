//! A response that a client reads over a WebSocket: each message is a part of the response.

use std::{fmt, io};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, stream::BoxStream};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{Message, protocol::frame::coding::CloseCode};

use super::socket::{accept, close_frame};
use crate::limits;

/// The content of a response.
pub(crate) struct Reading(pub(crate) BoxStream<'static, io::Result<Bytes>>);

impl fmt::Debug for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reading").finish_non_exhaustive()
    }
}

impl Reading {
    /// Sends the content, in base64 or as bytes, and closes the connection. Messages from the
    /// client are ignored.
    pub(super) async fn over_socket<S>(mut self, io: S, base64: bool)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let socket = accept(io).await;
        let unread = socket.get_ref().unread.clone();
        let (mut sink, mut source) = socket.split();
        let message = |bytes: Bytes| match base64 {
            true => Message::Text(STANDARD.encode(bytes).into()),
            false => Message::Binary(bytes),
        };
        // An empty message shows the client that it is connected.
        if sink.send(message(Bytes::new())).await.is_err() {
            return;
        }
        loop {
            let part = tokio::select! {
                part = self.0.next() => part,
                sent = source.next() => match sent {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {
                        unread.clear();
                        continue;
                    }
                },
            };
            let Some(Ok(bytes)) = part else { break };
            let sent = timeout(limits::SESSION_IDLE, sink.send(message(bytes))).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
        let close = Message::Close(Some(close_frame(CloseCode::Normal)));
        let closed = async {
            let _ = sink.send(close).await;
            while let Some(Ok(_)) = source.next().await {
                unread.clear();
            }
        };
        let _ = timeout(limits::LINGER, closed).await;
    }
}
