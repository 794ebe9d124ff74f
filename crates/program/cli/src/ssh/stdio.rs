//! Standard input and output as asynchronous streams. Threads read and write them, because they may
//! be pipes, sockets or files.

use std::io::{Read as _, Write as _};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::{mpsc, oneshot},
};

use crate::ui;

/// The size of the buffers in bytes.
const BUFFER: usize = 256 * 1024;
/// The size of a read in bytes.
const PIECE: usize = 64 * 1024;
/// The maximum number of pieces between a thread and its stream.
const QUEUED: usize = 4;

/// Standard input.
pub(super) fn input() -> DuplexStream {
    let (send, mut pieces) = mpsc::channel::<Vec<u8>>(QUEUED);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = stdin.read(&mut buffer) {
            if send.blocking_send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    let (reader, mut writer) = tokio::io::duplex(BUFFER);
    tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            if writer.write_all(&piece).await.is_err() {
                return;
            }
        }
    });
    reader
}

/// Standard output, written by a thread.
pub(super) struct Output {
    pub(super) stream: DuplexStream,
    /// Completes when everything was written after the stream was dropped, or at the first error,
    /// which the end of the program reports.
    pub(super) finished: oneshot::Receiver<()>,
    /// Receives a value at the first error. Without an error, the sender is dropped.
    pub(super) failed: oneshot::Receiver<()>,
}

/// Standard output.
pub(super) fn output() -> Output {
    let (send, mut pieces) = mpsc::channel::<Vec<u8>>(QUEUED);
    let (finish, finished) = oneshot::channel();
    let (fail, failed) = oneshot::channel();
    std::thread::spawn(move || {
        let mut stdout = std::io::stdout().lock();
        while let Some(piece) = pieces.blocking_recv() {
            let written = stdout.write_all(&piece).and_then(|()| stdout.flush());
            if let Err(error) = written {
                ui::output_failed(error);
                let _ = fail.send(());
                break;
            }
        }
        let _ = finish.send(());
    });
    let (stream, mut reader) = tokio::io::duplex(BUFFER);
    tokio::spawn(async move {
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            if send.send(buffer[..length].to_vec()).await.is_err() {
                return;
            }
        }
    });
    Output {
        stream,
        finished,
        failed,
    }
}
