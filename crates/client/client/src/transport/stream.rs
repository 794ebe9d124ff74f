//! Reads the bodies of streaming responses, in chunks or in lines.

use std::{pin::pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use http::Response;
use http_body_util::BodyExt;
use kube_client::client::Body;

use super::{Transport, call::Call, response};
use crate::error::{Error, Result};
use longshore_snapshots::WEB_PAGE;

/// The maximum length of a line, in bytes. A line has one object, and API servers do not store
/// objects of this size.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Streams the chunks of a body as they arrive. The stream ends with [`Error::Closed`] if
/// the connection is closed.
pub(crate) fn chunks(
    transport: Transport,
    response: Response<Body>,
) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
    stream::unfold(Some((transport, response.into_body())), |state| async {
        let (transport, mut body) = state?;
        match next_chunk(&transport, &mut body).await {
            Ok(Some(data)) => Some((Ok(data), Some((transport, body)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

async fn next_chunk(transport: &Transport, body: &mut Body) -> Result<Option<Bytes>> {
    loop {
        let frame = tokio::select! {
            biased;
            () = transport.closed().cancelled() => return Err(Error::Closed),
            frame = body.frame() => frame,
        };
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(transport.unreachable(&error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && !data.is_empty()
                {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// The lines of a body.
pub(crate) struct Lines {
    transport: Transport,
    body: Body,
    buffer: BytesMut,
    /// The number of bytes at the start of the buffer that contain no line end.
    searched: usize,
}

impl Lines {
    /// Reads the response to `call`.
    ///
    /// # Errors
    /// [`Error::Decode`] if the response is a web page.
    pub(crate) fn new(transport: Transport, call: &Call, response: Response<Body>) -> Result<Self> {
        if response::is_web_page(response.headers()) {
            return Err(Error::decode(call.response_name(), WEB_PAGE));
        }
        Ok(Self {
            transport,
            body: response.into_body(),
            buffer: BytesMut::new(),
            searched: 0,
        })
    }

    /// Returns the next line without its line end, `None` at the end of the body. Skips
    /// blank lines, and discards an incomplete line at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            match next_chunk(&self.transport, &mut self.body).await? {
                Some(data) if self.buffer.len() + data.len() > MAX_LINE_BYTES => {
                    let problem = format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20);
                    return Err(Error::decode("a line of a response", problem));
                }
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
    }
}

/// Returns the output of `work`, or `None` if it takes longer than `time`. With a `time` of
/// zero, `work` is polled twice and yields in between, so that the task of the connection
/// can deliver data that has already arrived, even if the caller polls in a loop.
pub(crate) async fn within<T>(time: Duration, work: impl Future<Output = T>) -> Option<T> {
    if !time.is_zero() {
        return tokio::time::timeout(time, work).await.ok();
    }
    let mut work = pin!(work);
    for _ in 0..2 {
        if let Poll::Ready(outcome) = futures::poll!(work.as_mut()) {
            return Some(outcome);
        }
        tokio::task::yield_now().await;
    }
    None
}
