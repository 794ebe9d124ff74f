//! Moves the bytes of a session: one task sends, one receives, one reads the
//! input, so that no direction waits for another.
//!
//! The protocol is `v5.channel.k8s.io`, or v4: each message is binary, and its
//! first byte says which stream it is of.

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
/// Of v5: the stream with the number that follows has ended.
const CLOSE: u8 = 255;

/// Keeps an idle connection from being closed on the way.
const PING: Duration = Duration::from_secs(30);
/// Bytes of input in a message.
const PIECE: usize = 32 * 1024;

/// What is to be sent.
pub(super) enum Frame {
    Data(u8, Bytes),
    Size { columns: u16, rows: u16 },
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

/// Sends what is queued; ends with the connection, or when all senders are gone.
pub(super) async fn send(
    mut sink: impl Sink<Message, Error = SocketError> + Unpin,
    mut queued: mpsc::Receiver<Frame>,
) {
    let mut pings = tokio::time::interval(PING);
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

/// Reads the input to its end, and sends its end if the protocol has that.
pub(super) async fn input(mut typed: DuplexStream, frames: mpsc::Sender<Frame>, closes: bool) {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        match typed.read_buf(&mut buffer).await {
            Ok(1..) => {
                let frame = Frame::Data(STDIN, buffer.split().freeze());
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
            Ok(0) | Err(_) => break,
        }
    }
    if closes {
        let _ = frames.send(Frame::End(STDIN)).await;
    }
}

/// Receives to the end of the session, and passes on its status.
pub(super) async fn receive(
    stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    outputs: [DuplexStream; 2],
    ended: oneshot::Sender<Result<Status>>,
    url: String,
) {
    let end = take(stream, outputs, url).await;
    let _ = ended.send(end);
}

async fn take(
    mut stream: impl Stream<Item = Result<Message, SocketError>> + Unpin,
    [mut out, mut err]: [DuplexStream; 2],
    url: String,
) -> Result<Status> {
    let broken = |problem: String| {
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
                return broken("the session broke off before its end".to_owned());
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return broken(format!("the session broke off: {error}")),
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
                    .map_err(|error| Error::decode("the end of a session", error));
            }
            _ => {}
        }
    }
}
