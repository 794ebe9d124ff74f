//! Attaches to a container. Several sessions can read its output and write to its input. A session
//! that does not read for a long time is dropped with an error, so that the container does not
//! block and its output does not accumulate.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use futures::future::join_all;
use longshore_node_api::{BoxedRead, BoxedWrite, Session, StreamsWanted};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf},
    sync::{mpsc, watch},
};

use crate::sandbox::{Input, Stream, Terminal};

/// Number of chunks that can wait for a listener.
const LISTENER_QUEUE: usize = 16;
/// The time for which a container waits for all its listeners together.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(10);
/// Buffered bytes of a container's input.
const INPUT_BUFFER: usize = 32 * 1024;

/// A container's streams, as attached sessions use them.
pub(crate) struct Attachment {
    input: Arc<tokio::sync::Mutex<Option<Input>>>,
    /// True if the input closes after the first session (`stdinOnce`).
    closes_once: bool,
    terminal: Option<Terminal>,
    listener_timeout: Duration,
    listeners: Mutex<Vec<Listener>>,
    next: AtomicUsize,
    /// Becomes true when the container has ended and all its output was sent.
    ended: watch::Sender<bool>,
}

struct Listener {
    id: usize,
    stream: Stream,
    chunks: mpsc::Sender<Bytes>,
    /// Becomes true when the listener is dropped.
    dropped: Arc<AtomicBool>,
}

impl Default for Attachment {
    /// A container without standard input.
    fn default() -> Self {
        Self::new(None, false, None)
    }
}

impl Attachment {
    pub(crate) fn new(input: Option<Input>, closes_once: bool, terminal: Option<Terminal>) -> Self {
        Self {
            input: Arc::new(tokio::sync::Mutex::new(input)),
            closes_once,
            terminal,
            listener_timeout: LISTENER_TIMEOUT,
            listeners: Mutex::default(),
            next: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
        }
    }

    /// Sends output of the container to all listeners.
    pub(crate) async fn send(&self, stream: Stream, bytes: &[u8]) {
        let concerned: Vec<_> = {
            let listeners = self.listeners.lock();
            let concerned = listeners.iter().filter(|one| one.stream == stream);
            concerned.map(|one| (one.id, one.chunks.clone())).collect()
        };
        if concerned.is_empty() {
            return;
        }
        let chunk = Bytes::copy_from_slice(bytes);
        // Sends concurrently, so that many slow listeners take no more time than one.
        let sending = concerned.into_iter().map(|(id, chunks)| {
            let chunk = chunk.clone();
            async move {
                let sent = tokio::time::timeout(self.listener_timeout, chunks.send(chunk));
                match sent.await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => self.remove_listener(id, false),
                    Err(_) => self.remove_listener(id, true),
                }
            }
        });
        join_all(sending).await;
    }

    fn remove_listener(&self, id: usize, dropped: bool) {
        self.listeners.lock().retain(|one| {
            if one.id == id && dropped {
                one.dropped.store(true, Ordering::Release);
            }
            one.id != id
        });
    }

    /// Ends all sessions because the container has ended.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        self.listeners.lock().clear();
    }

    /// Returns a receiver that becomes true when the container has ended.
    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    pub(crate) fn open(self: &Arc<Self>, wanted: StreamsWanted) -> Session {
        let mut ended = self.ended.subscribe();
        let end = async move {
            let _ = ended.wait_for(|ended| *ended).await;
            0
        };
        let is_terminal = self.terminal.is_some();
        Session {
            input: wanted.input.then(|| self.input()),
            output: wanted.output.then(|| self.listen(Stream::Output)),
            errors: (wanted.errors && !is_terminal).then(|| self.listen(Stream::Errors)),
            resize: self.terminal.clone().map(|terminal| {
                let resize = move |columns, rows| terminal.resize(columns, rows);
                Box::new(resize) as Box<dyn Fn(u16, u16) + Send + Sync>
            }),
            end: Box::pin(end),
        }
    }

    fn listen(&self, stream: Stream) -> BoxedRead {
        let (chunks, received) = mpsc::channel(LISTENER_QUEUE);
        let dropped = Arc::new(AtomicBool::new(false));
        let listener = Listener {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            stream,
            chunks,
            dropped: dropped.clone(),
        };
        let mut listeners = self.listeners.lock();
        listeners.retain(|one| !one.chunks.is_closed());
        // Nothing is sent after the end.
        if !*self.ended.borrow() {
            listeners.push(listener);
        }
        Box::pin(ListenerOutput {
            received,
            left: Bytes::new(),
            dropped,
            after: self.listener_timeout,
        })
    }

    /// Returns a writer to the input, which several sessions can share.
    fn input(self: &Arc<Self>) -> BoxedWrite {
        let (near, mut far) = tokio::io::duplex(INPUT_BUFFER);
        let (input, closes_once) = (self.input.clone(), self.closes_once);
        tokio::spawn(async move {
            let mut chunk = vec![0; INPUT_BUFFER];
            while let Ok(count @ 1..) = far.read(&mut chunk).await {
                let mut input = input.lock().await;
                let Some(pipe) = input.as_mut() else { return };
                if pipe.write_all(&chunk[..count]).await.is_err() {
                    *input = None;
                    return;
                }
            }
            if closes_once {
                *input.lock().await = None;
            }
        });
        Box::pin(near)
    }
}

/// The output that a listener reads.
struct ListenerOutput {
    received: mpsc::Receiver<Bytes>,
    left: Bytes,
    dropped: Arc<AtomicBool>,
    after: Duration,
}

impl AsyncRead for ListenerOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            match ready!(self.received.poll_recv(context)) {
                Some(chunk) => self.left = chunk,
                None if self.dropped.load(Ordering::Acquire) => {
                    let text = format!(
                        "the client did not read for {} s: output is lost to it, and the \
                         container goes on; attach again",
                        self.after.as_secs_f32()
                    );
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.left.len().min(buffer.remaining());
        buffer.put_slice(&self.left[..count]);
        self.left.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Instant;

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn listeners_that_do_not_read_get_an_error() {
        let attachment = Arc::new(Attachment {
            listener_timeout: SHORT,
            ..Attachment::default()
        });
        let mut slow: Vec<_> = (0..50).map(|_| attachment.listen(Stream::Output)).collect();
        let mut good = attachment.listen(Stream::Output);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            good.read_to_end(&mut all).await.unwrap();
            all.len()
        });
        let (chunk, number) = ([0; 1024], LISTENER_QUEUE * 3);
        let begin = Instant::now();
        for _ in 0..number {
            attachment.send(Stream::Output, &chunk).await;
        }
        // The container waited once, not for each listener.
        assert!(begin.elapsed() < SHORT * 10, "{:?}", begin.elapsed());
        assert_eq!(attachment.listeners.lock().len(), 1);
        attachment.end();
        assert_eq!(reading.await.unwrap(), number * chunk.len());
        for listener in &mut slow {
            let mut all = Vec::new();
            let error = listener.read_to_end(&mut all).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains("output is lost"), "{error}");
            // Earlier output is delivered.
            assert_eq!(all.len(), LISTENER_QUEUE * chunk.len());
        }
        // The container does not wait for a dropped listener.
        let gone = attachment.listen(Stream::Output);
        drop(gone);
        let begin = Instant::now();
        attachment.send(Stream::Output, &chunk).await;
        assert!(begin.elapsed() < SHORT);
    }
}
