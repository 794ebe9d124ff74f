//! What a request's body still had when it was answered. HTTP/1.1 can carry
//! the next request only behind the end of this body, so a little more of it
//! is read, as Go's server does; else clients that keep connections would find
//! theirs closed after every refusal.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::timeout;

/// How much more is read (as in Go), in bytes.
const MORE: usize = 256 << 10;
/// How long it may take to come.
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that is lent to whoever answers the request.
pub(crate) struct Lent(Arc<Mutex<Incoming>>);

/// What stays with the connection.
pub(crate) struct Leftover(Option<Arc<Mutex<Incoming>>>);

/// Lends a body; one that has ended already leaves nothing.
pub(crate) fn lend(body: Incoming) -> (Lent, Leftover) {
    let ended = body.is_end_stream();
    let body = Arc::new(Mutex::new(body));
    let leftover = Leftover((!ended).then(|| body.clone()));
    (Lent(body), leftover)
}

fn poll(
    body: &Mutex<Incoming>,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let mut body = body.lock().unwrap_or_else(PoisonError::into_inner);
    Pin::new(&mut *body).poll_frame(context)
}

impl Leftover {
    /// Reads to the end of the body, if that is near.
    pub(crate) async fn drain(self) {
        let Some(body) = self.0 else { return };
        let mut more = 0;
        let drained = std::future::poll_fn(|context| {
            while more <= MORE {
                match ready!(poll(&body, context)) {
                    Some(Ok(frame)) => more += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) | None => break,
                }
            }
            Poll::Ready(())
        });
        // What does not come in time keeps the answer from nobody.
        let _ = timeout(PATIENCE, drained).await;
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        poll(&self.0, context).map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.size_hint()
    }
}
