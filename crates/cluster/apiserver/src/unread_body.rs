//! Drains the unread part of a request body after the response. HTTP/1.1 can
//! carry the next request only after the end of this body, so the server reads
//! a little more, like Go's server; otherwise clients that reuse connections
//! would find them closed after every rejected request.

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

/// Maximum number of bytes that are drained (as in Go).
const DRAIN_LIMIT: usize = 256 << 10;
/// Maximum time for draining.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that is shared with the handler of the request.
pub(crate) struct SharedBody(Arc<Mutex<Incoming>>);

/// The connection's handle to the unread part of a body.
pub(crate) struct UnreadBody(Option<Arc<Mutex<Incoming>>>);

/// Shares a body. A body that has already ended does not need to be drained.
pub(crate) fn share(body: Incoming) -> (SharedBody, UnreadBody) {
    let ended = body.is_end_stream();
    let body = Arc::new(Mutex::new(body));
    let unread_body = UnreadBody((!ended).then(|| body.clone()));
    (SharedBody(body), unread_body)
}

fn poll(
    body: &Mutex<Incoming>,
    context: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let mut body = body.lock().unwrap_or_else(PoisonError::into_inner);
    Pin::new(&mut *body).poll_frame(context)
}

impl UnreadBody {
    /// Reads to the end of the body if little remains.
    pub(crate) async fn drain(self) {
        let Some(body) = self.0 else { return };
        let mut drained_bytes = 0;
        let drained = std::future::poll_fn(|context| {
            while drained_bytes <= DRAIN_LIMIT {
                match ready!(poll(&body, context)) {
                    Some(Ok(frame)) => drained_bytes += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) | None => break,
                }
            }
            Poll::Ready(())
        });
        // A timeout does not affect the response.
        let _ = timeout(DRAIN_TIMEOUT, drained).await;
    }
}

impl Body for SharedBody {
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
