//! Writes to a client over any transport.

use std::io;

use bytes::Bytes;
use longshore_node_api::BoxedRead;
use tokio::{io::AsyncReadExt as _, sync::mpsc};

use super::socket;
use crate::{limits, spdy};

/// Data from a client on a channel or stream, until it ends.
pub(super) type Incoming = mpsc::Receiver<Bytes>;

/// A channel or stream to a client.
#[derive(Debug, Clone)]
pub(super) enum Outgoing {
    Socket(socket::Writer),
    Spdy(spdy::Writer),
}

impl Outgoing {
    /// Sends bytes; waits while the client does not read.
    pub(super) async fn send(&self, bytes: Bytes) -> io::Result<()> {
        match self {
            Self::Socket(writer) => writer.send(bytes).await,
            Self::Spdy(writer) => writer.send(bytes).await,
        }
    }

    /// Ends the channel or stream, if the protocol supports it.
    pub(super) async fn finish(&self) -> io::Result<()> {
        match self {
            Self::Socket(_) => Ok(()),
            Self::Spdy(writer) => writer.finish().await,
        }
    }

    /// Sends all data from a reader; `note` is called for every piece.
    ///
    /// # Errors
    /// The client disconnected; kind `TimedOut` if the node dropped it because it was too slow.
    pub(super) async fn send_all(&self, mut from: BoxedRead, note: impl Fn()) -> io::Result<()> {
        let mut buffer = bytes::BytesMut::new();
        loop {
            buffer.reserve(limits::STREAM_CHUNK);
            // Output that precedes an error is still sent.
            match from.read_buf(&mut buffer).await {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                _ => return self.finish().await,
            }
            note();
            self.send(buffer.split().freeze()).await?;
        }
    }
}
