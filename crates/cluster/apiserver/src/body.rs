//! Response bodies: a buffer, a sequence of chunks produced while they are
//! sent, or an endless stream. Lists are sent in chunks so that a large list
//! never exists twice in memory.

use std::{
    io::{self, Write},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http_body::{Frame, SizeHint};

use crate::{limits, passed_on::Pass};

/// Chunks, produced on demand.
pub(crate) type Chunks = Box<dyn Iterator<Item = Bytes> + Send>;

/// The body of a response.
pub struct Body(Inner);

enum Inner {
    Full(Option<Bytes>),
    Chunks {
        chunks: Chunks,
        left: Option<u64>,
        /// Number of chunks produced without yielding.
        unyielded: u32,
    },
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

/// Size in bytes below which a piece is copied into a chunk instead of being sent as a separate
/// chunk.
pub(crate) const COPY_BELOW: usize = 16 << 10;

impl Body {
    /// An empty body.
    #[must_use]
    pub fn empty() -> Self {
        Self(Inner::Full(None))
    }

    /// A body of the given bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(Inner::Full((!bytes.is_empty()).then_some(bytes)))
    }

    /// A JSON document and a newline, as Go's encoder writes them. Large
    /// documents are not copied to add the newline.
    pub(crate) fn line(document: Bytes) -> Self {
        if document.len() > COPY_BELOW {
            let length = document.len() as u64 + 1;
            let parts = [document, Bytes::from_static(b"\n")];
            return Self::chunks(Box::new(parts.into_iter()), Some(length));
        }
        let mut line = Vec::with_capacity(document.len() + 1);
        line.extend_from_slice(&document);
        line.push(b'\n');
        Self::full(line)
    }

    /// A body of chunks with a total of `length` bytes, if known.
    pub(crate) fn chunks(chunks: Chunks, length: Option<u64>) -> Self {
        Self(Inner::Chunks {
            chunks,
            left: length,
            unyielded: 0,
        })
    }

    /// Returns the chunks of a finite body; returns a stream unchanged as an
    /// error.
    pub(crate) fn into_chunks(self) -> Result<Chunks, Self> {
        match self.0 {
            Inner::Full(bytes) => Ok(Box::new(bytes.into_iter())),
            Inner::Chunks { chunks, .. } => Ok(chunks),
            stream @ Inner::Stream(_) => Err(Self(stream)),
        }
    }

    /// Returns the first half of a finite body; a stream is returned whole.
    pub(crate) fn first_half(self) -> Self {
        match self.into_chunks() {
            Ok(chunks) => {
                let mut bytes: Vec<u8> = chunks.flatten().collect();
                bytes.truncate(bytes.len() / 2);
                Self::full(bytes)
            }
            Err(stream) => stream,
        }
    }

    /// The bytes of a body that is one buffer.
    pub(crate) fn buffer(&self) -> Option<&Bytes> {
        match &self.0 {
            Inner::Full(bytes) => bytes.as_ref(),
            _ => None,
        }
    }

    /// Calls a function with each part of the body when it is sent. The function
    /// is dropped with the body.
    pub(crate) fn observed(self, mut see: impl FnMut(&Bytes) + Send + 'static) -> Self {
        Self(match self.0 {
            Inner::Full(bytes) => {
                bytes.iter().for_each(see);
                Inner::Full(bytes)
            }
            Inner::Chunks {
                chunks,
                left,
                unyielded,
            } => Inner::Chunks {
                chunks: Box::new(chunks.inspect(see)),
                left,
                unyielded,
            },
            Inner::Stream(stream) => {
                Inner::Stream(stream.inspect_ok(move |part| see(part)).boxed())
            }
        })
    }

    /// Returns the stream of a streaming body; returns other bodies unchanged
    /// as an error.
    pub(crate) fn into_stream(self) -> Result<BoxStream<'static, io::Result<Bytes>>, Self> {
        match self.0 {
            Inner::Stream(stream) => Ok(stream),
            other => Err(Self(other)),
        }
    }

    /// The body of the response to a request that was passed on. The pass ends with the body.
    pub(crate) fn passed_on(incoming: hyper::body::Incoming, pass: Pass) -> Self {
        match Self::forwarded(incoming) {
            Self(Inner::Stream(chunks)) => Self::stream(Box::pin(chunks.inspect(move |_| {
                let _in_progress = &pass;
            }))),
            body => body,
        }
    }

    /// A body forwarded from a connection.
    pub(crate) fn forwarded(incoming: hyper::body::Incoming) -> Self {
        if http_body::Body::is_end_stream(&incoming) {
            return Self::empty();
        }
        let chunks = http_body_util::BodyDataStream::new(incoming);
        Self::stream(chunks.map_err(io::Error::other).boxed())
    }

    /// A body that streams until its source ends.
    pub(crate) fn stream(stream: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self(Inner::Stream(stream))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.get_mut().0 {
            Inner::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Chunks { unyielded, .. } if *unyielded == limits::CHUNKS_AT_A_TIME => {
                // Rendering tables takes time: yield to other tasks in between.
                *unyielded = 0;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Inner::Chunks {
                chunks,
                left,
                unyielded,
            } => {
                *unyielded += 1;
                let next = chunks.next();
                if let (Some(left), Some(chunk)) = (left.as_mut(), &next) {
                    *left = left.saturating_sub(chunk.len() as u64);
                }
                Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
            }
            Inner::Stream(stream) => Pin::new(stream)
                .poll_next(context)
                .map(|next| next.map(|r| r.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Chunks {
                left: Some(left), ..
            } => SizeHint::with_exact(*left),
            _ => SizeHint::default(),
        }
    }
}

/// Size in bytes at which a chunk is sent: large enough for few writes, small
/// enough to keep little in memory.
const CHUNK: usize = 64 * 1024;

/// Joins small pieces into chunks of about 64 KiB. Large pieces are passed
/// through without a copy, so that a client that does not read holds only
/// shared memory.
pub(crate) fn coalesce(mut pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Chunks {
    let mut large = None;
    Box::new(std::iter::from_fn(move || {
        if let Some(large) = large.take() {
            return Some(large);
        }
        let mut chunk = Vec::new();
        for piece in pieces.by_ref() {
            if piece.len() >= COPY_BELOW {
                if chunk.is_empty() {
                    return Some(piece);
                }
                large = Some(piece);
                break;
            }
            if chunk.is_empty() {
                chunk.reserve(CHUNK + CHUNK / 4);
            }
            chunk.extend_from_slice(&piece);
            if chunk.len() >= CHUNK {
                break;
            }
        }
        // Do not keep a whole chunk's capacity for a few bytes between large
        // pieces.
        if chunk.len() < CHUNK / 4 {
            chunk.shrink_to_fit();
        }
        (!chunk.is_empty()).then(|| chunk.into())
    }))
}

/// Compresses chunks on the fly. Level 1 is enough: clients are on the same
/// machine.
pub(crate) fn gzip(mut chunks: Chunks) -> Chunks {
    let mut encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    Box::new(std::iter::from_fn(move || {
        while let Some(open) = encoder.as_mut() {
            let Some(chunk) = chunks.next() else {
                // Writing to a Vec cannot fail.
                return encoder
                    .take()
                    .and_then(|encoder| encoder.finish().ok())
                    .map(Bytes::from);
            };
            if open.write_all(&chunk).is_err() {
                return None;
            }
            if open.get_ref().len() >= CHUNK / 4 {
                return Some(std::mem::take(open.get_mut()).into());
            }
        }
        None
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;

    use super::*;

    fn pieces() -> impl Iterator<Item = Bytes> + Send + 'static {
        (0..40_000_u32).map(|i| Bytes::from(format!("{i},")))
    }

    #[test]
    fn coalescing_keeps_every_byte_in_order() {
        let plain: Vec<u8> = pieces().flatten().collect();
        let chunks: Vec<Bytes> = coalesce(pieces()).collect();
        assert!(chunks.len() < 10, "{}", chunks.len());
        assert_eq!(chunks.concat(), plain);
    }

    #[test]
    fn large_pieces_are_not_copied() {
        let small = Bytes::from_static(b"small");
        let large = Bytes::from(vec![1; COPY_BELOW]);
        let pieces = [&small, &large, &small, &small, &large, &large].map(Bytes::clone);
        let chunks: Vec<Bytes> = coalesce(pieces.clone().into_iter()).collect();
        assert_eq!(chunks.concat(), pieces.concat());
        let shared = |chunk: &&Bytes| chunk.as_ptr() == large.as_ptr();
        assert_eq!(chunks.iter().filter(shared).count(), 3);
        assert_eq!(chunks.len(), 5);
    }

    #[test]
    fn gzip_can_be_read_back() {
        let packed: Vec<u8> = gzip(coalesce(pieces())).flatten().collect();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, pieces().flatten().collect::<Vec<u8>>());
        assert!(packed.len() < plain.len());
    }
}
