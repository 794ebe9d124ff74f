//! Streams over the bodies of responses that come bit by bit.

use std::{pin::pin, task::Poll, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use http::Response;
use http_body_util::BodyExt;
use kube_client::client::Body;

use super::{Transport, answer, call::Call};
use crate::{
    data::PAGE,
    error::{Error, Result},
};

/// No line of an API server is as long, in bytes.
const LONGEST: usize = 256 << 20;

/// The pieces of a body as they come; closing the cluster ends it with an
/// error.
pub(crate) fn pieces(
    transport: Transport,
    response: Response<Body>,
) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
    stream::unfold(Some((transport, response.into_body())), |state| async {
        let (transport, mut body) = state?;
        match piece(&transport, &mut body).await {
            Ok(Some(data)) => Some((Ok(data), Some((transport, body)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

async fn piece(transport: &Transport, body: &mut Body) -> Result<Option<Bytes>> {
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
    /// So many bytes of the buffer hold no line end.
    searched: usize,
}

impl Lines {
    /// The answer to `call`, which is no web page.
    pub(crate) fn new(transport: Transport, call: &Call, response: Response<Body>) -> Result<Self> {
        if answer::is_page(response.headers()) {
            return Err(Error::decode(call.answer(), PAGE));
        }
        Ok(Self {
            transport,
            body: response.into_body(),
            buffer: BytesMut::new(),
            searched: 0,
        })
    }

    /// The next whole line without its end; `None` at the end of the body,
    /// where a part of a line is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(at) = line_end(&self.buffer[self.searched..]) {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            match piece(&self.transport, &mut self.body).await? {
                Some(_) if self.buffer.len() > LONGEST => {
                    return Err(Error::decode("a line of an answer", "it does not end"));
                }
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
    }
}

/// The first line end, searched in blocks that the compiler can vectorise.
fn line_end(text: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let block = text.chunks(BLOCK).position(|block| {
        block
            .iter()
            .fold(false, |found, byte| found | (*byte == b'\n'))
    })?;
    let start = block * BLOCK;
    text[start..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|at| start + at)
}

/// What comes of `work` in time. Without time it still gets to see what the
/// connection's own task has received: also for a caller who asks in a loop.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_found_anywhere() {
        for length in 0..200 {
            let mut text = vec![b'x'; length];
            assert_eq!(line_end(&text), None);
            text.push(b'\n');
            text.extend([b'\n'; 70]);
            assert_eq!(line_end(&text), Some(length));
        }
    }
}
