//! Response bodies: a buffer, a sequence of chunks made as they are sent, or
//! an endless stream. Lists are sent in chunks so that a large one never
//! exists twice in memory.

use std::{
    io::{self, Write},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http_body::{Frame, SizeHint};

use crate::limits;

/// Chunks, made when they are asked for.
pub(crate) type Chunks = Box<dyn Iterator<Item = Bytes> + Send>;

/// The body of a response.
pub struct Body(Inner);

enum Inner {
    Full(Option<Bytes>),
    Chunks {
        chunks: Chunks,
        left: Option<u64>,
        /// How many were made without a pause.
        made: u32,
    },
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

/// What is smaller is copied rather than sent as a part of its own, in bytes.
pub(crate) const COPIED: usize = 16 << 10;

impl Body {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self(Inner::Full(None))
    }

    /// These bytes.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(Inner::Full((!bytes.is_empty()).then_some(bytes)))
    }

    /// A JSON document and a line break, as Go's encoder writes them. Large ones
    /// are not copied for that.
    pub(crate) fn line(document: Bytes) -> Self {
        if document.len() > COPIED {
            let length = document.len() as u64 + 1;
            let parts = [document, Bytes::from_static(b"\n")];
            return Self::chunks(Box::new(parts.into_iter()), Some(length));
        }
        let mut line = Vec::with_capacity(document.len() + 1);
        line.extend_from_slice(&document);
        line.push(b'\n');
        Self::full(line)
    }

    /// Chunks that are `length` bytes long together, when that is known.
    pub(crate) fn chunks(chunks: Chunks, length: Option<u64>) -> Self {
        Self(Inner::Chunks {
            chunks,
            left: length,
            made: 0,
        })
    }

    /// The chunks of a body that ends; a stream is handed back.
    pub(crate) fn into_chunks(self) -> Result<Chunks, Self> {
        match self.0 {
            Inner::Full(bytes) => Ok(Box::new(bytes.into_iter())),
            Inner::Chunks { chunks, .. } => Ok(chunks),
            stream @ Inner::Stream(_) => Err(Self(stream)),
        }
    }

    /// The first half of a body that ends; a stream stays whole.
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

    /// The stream of a body that ends when it likes; others are handed back.
    pub(crate) fn into_stream(self) -> Result<BoxStream<'static, io::Result<Bytes>>, Self> {
        match self.0 {
            Inner::Stream(stream) => Ok(stream),
            other => Err(Self(other)),
        }
    }

    /// What comes over a connection.
    pub(crate) fn passed_on(incoming: hyper::body::Incoming) -> Self {
        if http_body::Body::is_end_stream(&incoming) {
            return Self::empty();
        }
        let chunks = http_body_util::BodyDataStream::new(incoming);
        Self::stream(chunks.map_err(io::Error::other).boxed())
    }

    /// A stream that ends when it likes.
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
            Inner::Chunks { made, .. } if *made == limits::CHUNKS_AT_A_TIME => {
                // Tables take their time: others have their turn in between.
                *made = 0;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Inner::Chunks { chunks, left, made } => {
                *made += 1;
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

/// Size from which a chunk is sent: large enough for few writes, small enough
/// to keep little in memory.
const CHUNK: usize = 64 * 1024;

/// Joins small pieces into chunks of about 64 KiB. Large ones are passed on as
/// they are, not copied: a client that does not read holds what is shared.
pub(crate) fn coalesce(mut pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Chunks {
    let mut large = None;
    Box::new(std::iter::from_fn(move || {
        if let Some(large) = large.take() {
            return Some(large);
        }
        let mut chunk = Vec::new();
        for piece in pieces.by_ref() {
            if piece.len() >= COPIED {
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
        // Not the room of a whole chunk for a few bytes between large pieces.
        if chunk.len() < CHUNK / 4 {
            chunk.shrink_to_fit();
        }
        (!chunk.is_empty()).then(|| chunk.into())
    }))
}

/// Compresses chunks as they pass. Level 1: the reader is near.
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
        let large = Bytes::from(vec![1; COPIED]);
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
