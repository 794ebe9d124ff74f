//! Channels over a WebSocket: the first byte of a message is the channel
//! number.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, interval_at, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        error::ProtocolError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{protocol::Framing, unread::Counted};
use crate::limits;

/// Maximum number of messages that wait to be written.
const QUEUE_LENGTH: usize = 8;
/// Number of bytes that are read at a time.
const READ_SIZE: usize = 16 << 10;
/// Maximum size in bytes of the WebSocket's write buffer: one message, and the
/// answers to pings of a client that does not read them.
const WRITE_BUFFER: usize = 256 << 10;
/// The channel for messages that close other channels.
const CLOSE: u8 = 255;

/// Accepts a WebSocket on an upgraded connection.
pub(super) async fn accept<S>(io: S) -> WebSocketStream<Counted<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits::SOCKET_MESSAGE))
        .max_frame_size(Some(limits::SOCKET_MESSAGE))
        .read_buffer_size(READ_SIZE)
        // Send immediately.
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER);
    WebSocketStream::from_raw_socket(Counted::new(io), Role::Server, Some(config)).await
}

/// Returns the close code for a client that violated the protocol or a limit;
/// `None` if the client disconnected.
pub(super) fn close_code(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Capacity(_) => Some(CloseCode::Size),
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => Some(CloseCode::Again),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some(CloseCode::Protocol),
        _ => None,
    }
}

/// Returns the close frame of a WebSocket that ends early.
pub(super) fn close_frame(code: CloseCode) -> CloseFrame {
    let reason = match code {
        CloseCode::Size => "a message is too large",
        CloseCode::Again => "too many large messages at a time: send smaller ones",
        CloseCode::Normal => "",
        _ => "not a valid websocket message",
    };
    CloseFrame {
        code,
        reason: Utf8Bytes::from_static(reason),
    }
}

/// Channels over a WebSocket; drop it to end the connection.
pub(super) struct Socket {
    framing: Framing,
    messages: mpsc::Sender<Message>,
    disconnected: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

/// Writes to a client on one channel.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    channel: u8,
    base64: bool,
    messages: mpsc::Sender<Message>,
}

impl Writer {
    pub(super) async fn send(&self, bytes: Bytes) -> io::Result<()> {
        let message = if self.base64 {
            let digit = char::from(b'0'.saturating_add(self.channel));
            let mut text = String::from(digit);
            STANDARD.encode_string(&bytes, &mut text);
            Message::Text(text.into())
        } else {
            let mut message = BytesMut::with_capacity(bytes.len() + 1);
            message.extend_from_slice(&[self.channel]);
            message.extend_from_slice(&bytes);
            Message::Binary(message.freeze())
        };
        let sent = self.messages.send(message).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Socket {
    /// Opens channels. Returns the input of the channels in `reading`.
    pub(super) async fn open<S>(
        io: S,
        framing: Framing,
        reading: &[u8],
    ) -> (Self, Vec<mpsc::Receiver<Bytes>>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let socket = accept(io).await;
        let unread = socket.get_ref().unread.clone();
        let (sink, mut source) = socket.split();
        let (give_back, given_back) = oneshot::channel();
        let (messages, outgoing) = mpsc::channel(QUEUE_LENGTH);
        let (tell, disconnected) = watch::channel(false);
        let tell = Arc::new(tell);
        let mut tasks = JoinSet::new();
        // Each channel buffers one piece while the next is in transit.
        let (senders, receivers): (Vec<_>, Vec<_>) =
            reading.iter().map(|_| mpsc::channel(1)).unzip();
        let mut channels: HashMap<u8, mpsc::Sender<Bytes>> =
            reading.iter().copied().zip(senders).collect();
        tasks.spawn({
            // Weak, so that dropping the last other sender ends the writer.
            let (tell, messages) = (tell.clone(), messages.downgrade());
            async move {
                let mut failed = None;
                while let Some(message) = source.next().await {
                    let bytes = match message {
                        Ok(Message::Close(_)) => break,
                        Ok(Message::Binary(bytes)) => bytes,
                        Ok(Message::Text(text)) => text.into(),
                        Ok(other) => {
                            unread.control_frame(other.len());
                            continue;
                        }
                        Err(error) => {
                            tracing::debug!(%error, "closing a WebSocket");
                            failed = close_code(&error);
                            break;
                        }
                    };
                    deliver(bytes, framing, &mut channels).await;
                    unread.clear();
                }
                // Earlier messages are still delivered; no more follow.
                drop(channels);
                tell.send_replace(true);
                if let Some(code) = failed {
                    let close = Message::Close(Some(close_frame(code)));
                    if let Some(messages) = messages.upgrade() {
                        let _ = messages.send(close).await;
                    }
                    let _ = give_back.send(source);
                } else {
                    // Read until the closing handshake is complete.
                    while let Some(Ok(_)) = source.next().await {}
                }
            }
        });
        tasks.spawn(async move {
            // The reader may be blocked: a failed ping shows that the client
            // disconnected.
            match write_messages(sink, outgoing).await {
                Ok(None) => {}
                Ok(Some(sink)) => drain(sink, given_back).await,
                Err(error) => {
                    tracing::debug!(%error, "a WebSocket ended");
                    tell.send_replace(true);
                }
            }
        });
        let socket = Self {
            framing,
            messages,
            disconnected,
            tasks,
        };
        (socket, receivers)
    }

    pub(super) fn writer(&self, channel: u8) -> Writer {
        Writer {
            channel,
            base64: self.framing.base64,
            messages: self.messages.clone(),
        }
    }

    /// Resolves when the client disconnects.
    pub(super) fn disconnected(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut disconnected = self.disconnected.clone();
        async move {
            let _ = disconnected.wait_for(|disconnected| *disconnected).await;
        }
    }

    /// Sends a close frame after all writers are dropped, and waits for the
    /// client's answer.
    pub(super) async fn close(self, most: Duration) {
        let Self {
            messages,
            mut tasks,
            ..
        } = self;
        drop(messages);
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _ = timeout(most, ended).await;
    }
}

/// Forwards a message in bounded pieces.
async fn deliver(
    mut bytes: Bytes,
    framing: Framing,
    channels: &mut HashMap<u8, mpsc::Sender<Bytes>>,
) {
    if bytes.is_empty() {
        return;
    }
    let mut channel = bytes.split_to(1)[0];
    if framing.base64 {
        channel = channel.wrapping_sub(b'0');
        bytes = match STANDARD.decode(&bytes) {
            Ok(decoded) => decoded.into(),
            Err(_) => return,
        };
    }
    if channel == CLOSE && framing.closes {
        if let Some(closed) = bytes.first() {
            channels.remove(closed);
        }
        return;
    }
    while !bytes.is_empty() {
        // Copied, because a waiting slice would keep the whole message in
        // memory.
        let piece = bytes.split_to(bytes.len().min(limits::STREAM_CHUNK));
        let piece = Bytes::copy_from_slice(&piece);
        let Some(reading) = channels.get(&channel) else {
            return;
        };
        if reading.send(piece).await.is_err() {
            channels.remove(&channel);
        }
    }
}

type Sending<S> = SplitSink<WebSocketStream<Counted<S>>, Message>;
type Receiving<S> = SplitStream<WebSocketStream<Counted<S>>>;

/// Writes all messages and closes the WebSocket. Returns the sink if it was
/// closed early.
async fn write_messages<S>(
    mut sink: Sending<S>,
    mut messages: mpsc::Receiver<Message>,
) -> Result<Option<Sending<S>>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + limits::PING, limits::PING);
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
        };
        let Some(message) = message else { break };
        let closes = matches!(message, Message::Close(_));
        sink.send(message).await?;
        if closes {
            return Ok(Some(sink));
        }
    }
    let close = close_frame(CloseCode::Normal);
    sink.send(Message::Close(Some(close))).await?;
    Ok(None)
}

/// Discards further data from a client after the close frame, for a limited time. Closing the
/// connection earlier would reset it, and the client might not receive the reason.
async fn drain<S>(sink: Sending<S>, source: oneshot::Receiver<Receiving<S>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok(source) = source.await else { return };
    let Ok(socket) = source.reunite(sink) else {
        return;
    };
    let mut io = socket.into_inner().into_inner();
    let mut dropped = vec![0; READ_SIZE];
    let draining = async { while let Ok(1..) = io.read(&mut dropped).await {} };
    let _ = timeout(limits::DRAIN, draining).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::streams::protocol::Report;

    #[tokio::test]
    async fn waiting_pieces_do_not_keep_the_whole_message() {
        let framing = Framing {
            base64: false,
            closes: true,
            report: Report::Status,
        };
        let (sender, mut pieces) = mpsc::channel(8);
        let mut channels = HashMap::from([(0, sender)]);
        for length in [3, limits::STREAM_CHUNK, 2 * limits::STREAM_CHUNK + 5] {
            let message = Bytes::from(vec![0; length]);
            let others = message.clone();
            deliver(message, framing, &mut channels).await;
            drop(others);
            let mut sum = 0;
            while let Ok(piece) = pieces.try_recv() {
                assert!(piece.is_unique(), "{length}");
                sum += piece.len();
            }
            assert_eq!(sum, length - 1);
        }
    }
}
