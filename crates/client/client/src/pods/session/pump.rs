//! Transfers the data of a session. One task sends, one receives, and one reads the input, so
//! that no direction blocks another.
//!
//! The protocol is `v5.channel.k8s.io` or v4. Each message is binary, and its first byte is
//! the number of its stream.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Sink, SinkExt, Stream, StreamExt};
use longshore_model::Status;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{mpsc, oneshot},
};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use crate::error::{Error, Result};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Signals the end of the stream with the number that follows. Only in v5.
const CLOSE: u8 = 255;

/// The interval of pings, which prevent proxies from closing an idle connection.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum size of the input in a message, in bytes.
const INPUT_CHUNK: usize = 32 * 1024;

/// A message to send.
pub(super) enum Frame {
    /// Data of a stream.
    Data(u8, Bytes),
    /// The size of the terminal.
    Size { columns: u16, rows: u16 },
    /// The end of a stream.
    End(u8),
}

impl Frame {
    fn message(self) -> Message {
        let (channel, data) = match self {
            Self::Data(channel, data) => (channel, data),
            Self::Size { columns, rows } => {
                let size = json!({"Width": columns, "Height": rows});
                (RESIZE, size.to_string().into())
            }
            Self::End(channel) => (CLOSE, Bytes::copy_from_slice(&[channel])),
        };
        let mut message = BytesMut::with_capacity(data.len() + 1);
        message.put_u8(channel);
        message.extend_from_slice(&data);
        Message::Binary(message.freeze())
    }
}

/// Sends the queued frames. Returns when the connection is lost or all senders are dropped.
pub(super) async fn send(
    mut sink: impl Sink<Message, Error = SocketError> + Unpin,
    mut queued: mpsc::Receiver<Frame>,
) {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    pings.reset();
    loop {
        let message = tokio::select! {
            frame = queued.recv() => match frame {
                Some(frame) => frame.message(),
                None => break,
            },
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.close().await;
}

/// Sends the input up to its end. If `ends_input`, also sends the end.
pub(super) async fn input(mut stdin: DuplexStream, frames: mpsc::Sender<Frame>, ends_input: bool) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(INPUT_CHUNK);
        match stdin.read_buf(&mut buffer).await {
            Ok(1..) => {
                let frame = Frame::Data(STDIN, buffer.split().freeze());
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
            Ok(0) | Err(_) => break,
        }
    }
    if ends_input {
        let _ = frames.send(Frame::End(STDIN)).await;
    }
}

/// Receives the outputs up to the end of the session, and sends its status to `ended`.
pub(super) async fn receive(
    stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    outputs: [DuplexStream; 2],
    ended: oneshot::Sender<Result<Status>>,
    url: String,
) {
    let status = receive_status(stream, outputs, url).await;
    let _ = ended.send(status);
}

async fn receive_status(
    mut stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    [mut out, mut err]: [DuplexStream; 2],
    url: String,
) -> Result<Status> {
    let lost = |problem: String| {
        Err(Error::Unreachable {
            url: url.clone(),
            problem,
        })
    };
    loop {
        let data = match stream.next().await {
            Some(Ok(Message::Binary(data))) => data,
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Close(_))) | None => {
                return lost("the connection was closed before the session ended".to_owned());
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return lost(format!("the connection was lost: {error}")),
        };
        let Some((&channel, data)) = data.split_first() else {
            continue;
        };
        match channel {
            // Output without a reader is discarded.
            STDOUT => drop(out.write_all(data).await),
            STDERR => drop(err.write_all(data).await),
            STATUS => {
                return serde_json::from_slice(data)
                    .map_err(|error| Error::decode("the status of a session", error));
            }
            _ => {}
        }
    }
}
