//! Attaching to a container: many may listen to its output, and write to its
//! input. A listener that takes nothing for long is let go of, so that neither
//! the container waits for ever nor what it writes piles up.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf},
    sync::{mpsc, watch},
};

use super::{Session, SessionInput, SessionOutput, Wanted};
use crate::{
    logs::Stream,
    sandbox::{Input, Terminal},
};

/// Chunks that may wait for a listener.
const WAITING: usize = 16;
/// How long a container waits for a listener.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes on their way to a container's input.
const INPUT: usize = 32 * 1024;

/// A container's streams, as those see them who attach.
pub(crate) struct Attachment {
    input: Arc<tokio::sync::Mutex<Option<Input>>>,
    /// The input closes after the first session (`stdinOnce`).
    once: bool,
    terminal: Option<Terminal>,
    listeners: Mutex<Vec<Listener>>,
    next: AtomicUsize,
    /// Comes true when the container has ended and all it wrote is told.
    ended: watch::Sender<bool>,
}

struct Listener {
    id: usize,
    stream: Stream,
    chunks: mpsc::Sender<Bytes>,
}

impl Default for Attachment {
    /// Of a container that reads nothing.
    fn default() -> Self {
        Self::new(None, false, None)
    }
}

impl Attachment {
    pub(crate) fn new(input: Option<Input>, once: bool, terminal: Option<Terminal>) -> Self {
        Self {
            input: Arc::new(tokio::sync::Mutex::new(input)),
            once,
            terminal,
            listeners: Mutex::default(),
            next: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
        }
    }

    /// Tells all listeners what the container wrote.
    pub(crate) async fn tell(&self, stream: Stream, bytes: &[u8]) {
        let concerned: Vec<_> = {
            let listeners = self.listeners.lock();
            let concerned = listeners.iter().filter(|one| one.stream == stream);
            concerned.map(|one| (one.id, one.chunks.clone())).collect()
        };
        if concerned.is_empty() {
            return;
        }
        let chunk = Bytes::copy_from_slice(bytes);
        for (id, chunks) in concerned {
            let telling = tokio::time::timeout(PATIENCE, chunks.send(chunk.clone()));
            if !matches!(telling.await, Ok(Ok(()))) {
                self.listeners.lock().retain(|one| one.id != id);
            }
        }
    }

    /// The container has ended: so do all sessions.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        self.listeners.lock().clear();
    }

    pub(super) fn open(self: &Arc<Self>, wanted: Wanted) -> Session {
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

    fn listen(&self, stream: Stream) -> SessionOutput {
        let (chunks, told) = mpsc::channel(WAITING);
        let listener = Listener {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            stream,
            chunks,
        };
        let mut listeners = self.listeners.lock();
        listeners.retain(|one| !one.chunks.is_closed());
        // After its end nobody is told anything.
        if !*self.ended.borrow() {
            listeners.push(listener);
        }
        Box::pin(Told {
            told,
            left: Bytes::new(),
        })
    }

    /// A way to the input that several sessions may have at once.
    fn input(self: &Arc<Self>) -> SessionInput {
        let (near, mut far) = tokio::io::duplex(INPUT);
        let (input, once) = (self.input.clone(), self.once);
        tokio::spawn(async move {
            let mut chunk = vec![0; INPUT];
            while let Ok(count @ 1..) = far.read(&mut chunk).await {
                let mut input = input.lock().await;
                let Some(pipe) = input.as_mut() else { return };
                if pipe.write_all(&chunk[..count]).await.is_err() {
                    *input = None;
                    return;
                }
            }
            if once {
                *input.lock().await = None;
            }
        });
        Box::pin(near)
    }
}

/// What a listener is told.
struct Told {
    told: mpsc::Receiver<Bytes>,
    left: Bytes,
}

impl AsyncRead for Told {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            match ready!(self.told.poll_recv(context)) {
                Some(chunk) => self.left = chunk,
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.left.len().min(buffer.remaining());
        buffer.put_slice(&self.left[..count]);
        self.left.advance(count);
        Poll::Ready(Ok(()))
    }
}
