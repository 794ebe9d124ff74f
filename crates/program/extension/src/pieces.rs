//! Results that arrive piece by piece, for consumers of single pieces.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Mutex as StdMutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, Stream, StreamExt, stream, stream::BoxStream};
use longshore::Error;
use tokio::{
    sync::{Mutex, mpsc, watch},
    task::yield_now,
    time::timeout,
};

/// The maximum number of pieces that one wait takes from a stream.
const AT_ONCE: usize = 256;

/// A batch that is read ahead ends when its pieces have this size, in bytes.
const BATCH_BYTES: usize = 1 << 20;

/// The number of batches that are read ahead.
const AHEAD: usize = 2;

type Next<T> = Result<T, Error>;

/// The pieces of a stream, for several threads and tasks.
pub(crate) struct Pieces<T> {
    /// `None` after it was closed.
    batches: Mutex<Option<BoxStream<'static, Vec<Next<T>>>>>,
    /// The pieces that have arrived.
    here: StdMutex<VecDeque<Next<T>>>,
    /// True after the stream was closed; wakes the tasks that wait.
    closed: watch::Sender<bool>,
}

/// The outcome of a wait for a piece.
pub(crate) enum Outcome<T> {
    Piece(T),
    End,
    Late,
}

impl<T: Send + 'static> Pieces<T> {
    /// The pieces of a stream that is read when a piece is wanted.
    pub(crate) fn new(pieces: impl Stream<Item = Next<T>> + Send + 'static) -> Self {
        Self::of(pieces.ready_chunks(AT_ONCE))
    }

    /// The pieces of a stream that a task reads ahead, up to a thousand pieces and a few megabytes;
    /// `size` returns the bytes of a piece. If pieces were read from a connection one by one, the
    /// threads of the reader and of the connection would wait for each other each time. Must be
    /// called in the runtime.
    pub(crate) fn ahead(
        pieces: impl Stream<Item = Next<T>> + Send + 'static,
        size: fn(&T) -> usize,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(AHEAD);
        tokio::spawn(async move {
            let mut pieces = pin!(pieces.fuse());
            loop {
                let batch = tokio::select! {
                    biased;
                    () = sender.closed() => return,
                    batch = batch(pieces.as_mut(), size) => batch,
                };
                let Some(batch) = batch else { return };
                if sender.send(batch).await.is_err() {
                    return;
                }
            }
        });
        Self::of(stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        }))
    }

    fn of(batches: impl Stream<Item = Vec<Next<T>>> + Send + 'static) -> Self {
        Self {
            batches: Mutex::new(Some(batches.boxed())),
            here: StdMutex::default(),
            closed: watch::Sender::new(false),
        }
    }

    /// The next piece, if it has arrived.
    pub(crate) fn taken(&self) -> Option<Next<T>> {
        if *self.closed.borrow() {
            return None;
        }
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.pop_front()
    }

    async fn wait(&self) -> Option<Next<T>> {
        let mut batches = self.batches.lock().await;
        // Another task may have waited for the same pieces.
        if let Some(next) = self.taken() {
            return Some(next);
        }
        let batch = batches.as_mut()?.next().await?;
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.extend(batch);
        here.pop_front()
    }

    async fn next(&self) -> Option<Next<T>> {
        let mut closed = self.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => {}
            next = self.wait() => return next,
        }
        self.disconnect();
        None
    }

    /// The next piece, or the end, within the limit.
    pub(crate) async fn outcome(&self, limit: Option<Duration>) -> Result<Outcome<T>, Error> {
        let next = match limit {
            None => self.next().await,
            Some(limit) => match timeout(limit, self.next()).await {
                Ok(next) => next,
                Err(_) => return Ok(Outcome::Late),
            },
        };
        next.map_or(Ok(Outcome::End), |piece| piece.map(Outcome::Piece))
    }

    /// Ends the pieces, also for tasks that wait.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
        self.disconnect();
    }

    /// Closes the connection, unless another task waits for a piece. In this case, that task closes
    /// it.
    fn disconnect(&self) {
        if let Ok(mut batches) = self.batches.try_lock() {
            *batches = None;
        }
    }
}

/// The pieces that have arrived, at least one. `None` at the end.
async fn batch<T>(
    mut pieces: impl Stream<Item = Next<T>> + Unpin,
    size: fn(&T) -> usize,
) -> Option<Vec<Next<T>>> {
    let bytes = |piece: &Next<T>| piece.as_ref().map_or(0, size);
    let first = pieces.next().await?;
    let mut total = bytes(&first);
    let mut batch = vec![first];
    let mut waited = false;
    while batch.len() < AT_ONCE && total < BATCH_BYTES {
        match pieces.next().now_or_never() {
            Some(Some(piece)) => {
                total = total.saturating_add(bytes(&piece));
                batch.push(piece);
                waited = false;
            }
            None if !waited => {
                waited = true;
                // The task of the connection can deliver pieces that have arrived.
                yield_now().await;
            }
            None | Some(None) => break,
        }
    }
    Some(batch)
}
