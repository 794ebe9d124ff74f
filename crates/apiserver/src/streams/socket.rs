//! Channels over a websocket: the first byte of a message says for which it is.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _, stream::SplitSink};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, interval_at},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{channel::Incoming, protocol::Framing};
use crate::limits;

/// Messages that may wait to be written.
const WAITING: usize = 8;
/// The channel of messages that close others.
const CLOSE: u8 = 255;

/// A websocket that a connection has been upgraded to.
pub(super) async fn accept<S>(io: S) -> WebSocketStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits::SOCKET_MESSAGE))
        .max_frame_size(Some(limits::SOCKET_MESSAGE))
        // Sent at once: this is as much as may wait besides.
        .write_buffer_size(0)
        .max_write_buffer_size(limits::SOCKET_MESSAGE);
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Channels over a websocket; dropping it ends the connection.
pub(super) struct Socket {
    framing: Framing,
    messages: mpsc::Sender<Message>,
    gone: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

/// The way to a client on one channel.
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
    /// Opens channels; gives what comes on those of `reading`.
    pub(super) async fn open<S>(io: S, framing: Framing, reading: &[u8]) -> (Self, Vec<Incoming>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sink, mut source) = accept(io).await.split();
        let (messages, outgoing) = mpsc::channel(WAITING);
        let (tell, gone) = watch::channel(false);
        let tell = Arc::new(tell);
        let mut tasks = JoinSet::new();
        // One piece waits while the next is on its way.
        let (senders, receivers): (Vec<_>, Vec<_>) =
            reading.iter().map(|_| mpsc::channel(1)).unzip();
        let mut channels: HashMap<u8, mpsc::Sender<Bytes>> =
            reading.iter().copied().zip(senders).collect();
        tasks.spawn({
            let tell = tell.clone();
            async move {
                while let Some(Ok(message)) = source.next().await {
                    let bytes = match message {
                        Message::Close(_) => break,
                        Message::Binary(bytes) => bytes,
                        Message::Text(text) => text.into(),
                        _ => continue,
                    };
                    deliver(bytes, framing, &mut channels).await;
                }
                tell.send_replace(true);
                // To the end of the closing handshake.
                while let Some(Ok(_)) = source.next().await {}
            }
        });
        tasks.spawn(async move {
            // The reader may be waiting for others: it is the pings that tell
            // that nobody is there any more.
            if let Err(error) = write_messages(sink, outgoing).await {
                tracing::debug!(%error, "a websocket ended");
                tell.send_replace(true);
            }
        });
        let socket = Self {
            framing,
            messages,
            gone,
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

    /// Done when the client has gone.
    pub(super) fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move {
            let _ = gone.wait_for(|gone| *gone).await;
        }
    }

    /// Says goodbye, once all writers have gone, and waits for the answer.
    pub(super) async fn close(self, most: Duration) {
        let Self {
            messages,
            mut tasks,
            ..
        } = self;
        drop(messages);
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(most, ended).await;
    }
}

/// Hands a message on, in pieces of a bounded size.
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
        let piece = bytes.split_to(bytes.len().min(limits::STREAM_CHUNK));
        let Some(reading) = channels.get(&channel) else {
            return;
        };
        if reading.send(piece).await.is_err() {
            channels.remove(&channel);
        }
    }
}

async fn write_messages<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    mut messages: mpsc::Receiver<Message>,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + limits::PING, limits::PING);
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = pings.tick() => Some(Message::Ping(Bytes::new())),
        };
        match message {
            Some(message) => sink.send(message).await?,
            None => break,
        }
    }
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    sink.send(Message::Close(Some(goodbye))).await?;
    Ok(())
}
