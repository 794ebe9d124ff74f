//! The loop of a server: reads and writes the streams, and passes messages between the layers.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::timeout,
};

use crate::{
    Host, Keys,
    auth::Auth,
    connection::Connection,
    transport::{Error, Transport, reason},
};

/// The number of waiting output bytes above which no more output of sessions is accepted.
const MAX_WAITING: usize = 256 << 10;
/// The number of waiting output bytes above which no more messages of the client are read.
const MAX_WAITING_REPLIES: usize = 1 << 20;
/// The size of a read in bytes.
const PIECE: usize = 64 << 10;
/// The maximum time to send the last messages.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum time that sessions may take to end after their task.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// The client has left.
    Left,
    /// The future `over` completed first. Its text was sent to the client.
    Over(String),
}

/// Serves one client until it leaves or `over` completes. The client shows the text of `over`.
///
/// # Errors
/// See [`Error`]. The client receives a message, too.
pub async fn serve(
    reader: impl AsyncRead,
    writer: impl AsyncWrite,
    keys: &Keys,
    host: Arc<dyn Host>,
    over: impl Future<Output = String>,
) -> Result<Served, Error> {
    let mut transport = Transport::new(keys.host());
    let mut connection = Connection::new(host);
    let mut writer = pin!(writer);
    let result = run(
        &mut transport,
        &mut connection,
        Auth::new(keys.client()),
        (pin!(reader), writer.as_mut()),
        over,
    )
    .await;
    let closing = async {
        match &result {
            Ok(Served::Over(text)) => transport.disconnect(reason::BY_APPLICATION, text),
            Ok(Served::Left) | Err(Error::Disconnected(_) | Error::Io(_)) => return,
            Err(error) => transport.fail(error),
        }
        let flushed = async {
            while !transport.output().is_empty() {
                writer.write_buf(transport.output()).await?;
            }
            writer.flush().await
        };
        let _ = timeout(FLUSH_TIMEOUT, flushed).await;
    };
    tokio::join!(closing, connection.close());
    match result {
        // ssh disconnects like this at its normal end.
        Err(Error::Disconnected(_)) => Ok(Served::Left),
        result => result,
    }
}

async fn run(
    transport: &mut Transport<'_>,
    connection: &mut Connection,
    mut auth: Auth<'_>,
    (mut reader, mut writer): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    over: impl Future<Output = String>,
) -> Result<Served, Error> {
    let mut is_authenticated = false;
    let mut over = pin!(over);
    // Set when the task has ended, while its sessions end.
    let mut last: Option<String> = None;
    let mut deadline = pin!(tokio::time::sleep(Duration::MAX));
    loop {
        // The messages of at most one read, and their replies are short.
        while let Some(payload) = transport.next()? {
            if !is_authenticated {
                is_authenticated = auth.answer(transport, &payload)?;
                continue;
            }
            for reply in connection.on_message(&payload)? {
                transport.send(&reply)?;
            }
        }
        if let Some(text) = last.take_if(|_| !connection.has_sessions()) {
            return Ok(Served::Over(text));
        }
        let waiting = transport.output().len();
        let accepts_output = waiting < MAX_WAITING && transport.may_send();
        // Both are borrowed from the transport one after the other: reads are appended to its
        // input.
        let (input, output) = transport.buffers();
        input.reserve(PIECE);
        tokio::select! {
            read = reader.read_buf(input), if waiting < MAX_WAITING_REPLIES => {
                if read? == 0 {
                    return Ok(Served::Left);
                }
            }
            written = writer.write_buf(output), if waiting > 0 => {
                written?;
                writer.flush().await?;
            }
            event = connection.event(), if accepts_output => {
                if let Some(event) = event {
                    for reply in connection.on_event(event) {
                        transport.send(&reply)?;
                    }
                }
            }
            text = &mut over, if last.is_none() => {
                last = Some(text);
                deadline.set(tokio::time::sleep(END_TIMEOUT));
            }
            () = &mut deadline, if last.is_some() => {
                return Ok(Served::Over(last.unwrap_or_default()));
            }
        }
    }
}
