//! Reads the body of a response into one buffer.

use bytes::{Bytes, BytesMut};
use http::{Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use kube_client::client::Body;

/// The maximum size of a body that is read into memory, in bytes. A list of 500 objects of the
/// maximum size that etcd stores by default has three times as many, which no cluster was seen
/// to return; a larger body more likely comes from a server that never ends it.
pub(crate) const MAX_BODY_BYTES: usize = 256 << 20;

/// Buffers of at least this size get the maximum capacity at once: allocators copy a buffer that
/// grows, so old and new buffers would take several times the memory. Unused capacity takes no
/// memory.
const LARGE_BYTES: usize = 16 << 20;

/// The maximum size of the body of an error response, in bytes.
const MAX_ERROR_BYTES: usize = 16 << 20;

/// The reason why a body could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// The connection failed.
    Connection(kube_client::Error),
    /// The body is larger than the limit.
    TooLarge,
}

/// Reads the body of an error response, at most its first [`MAX_ERROR_BYTES`] bytes. A body that
/// cannot be read is empty.
pub(super) async fn read_error(response: Response<Body>) -> Bytes {
    let mut body = response.into_body();
    let mut begin = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let data = frame.into_data().unwrap_or_default();
        let room = MAX_ERROR_BYTES - begin.len();
        begin.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            break;
        }
    }
    begin.freeze()
}

/// Reads the whole body, at most `max_bytes`, into one buffer. No chunks are kept, so that the memory
/// in use stays close to the size of the body. The `expected` size in bytes is used if the response has no `Content-Length` header. `inspect` is called with the
/// body read so far, after each chunk, until it returns false.
pub(super) async fn read(
    response: Response<Body>,
    max_bytes: usize,
    expected: usize,
    mut inspect: impl FnMut(&[u8]) -> bool,
) -> Result<Bytes, ReadError> {
    let declared = response
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > max_bytes) {
        return Err(ReadError::TooLarge);
    }
    let declared = declared.unwrap_or(expected.min(max_bytes));
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    let (mut first, mut inspects): (Option<Bytes>, bool) = (None, true);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ReadError::Connection)?.into_data() else {
            continue;
        };
        let length = first.as_ref().map_or(whole.len(), Bytes::len);
        if length + data.len() > max_bytes {
            return Err(ReadError::TooLarge);
        }
        match first.take() {
            // A body of a single chunk, as from a server in this process, is not copied.
            None if whole.is_empty() => first = Some(data),
            None => {
                let needed = length + data.len();
                if needed > whole.capacity() && needed > LARGE_BYTES {
                    whole.reserve(max_bytes - length);
                }
                whole.extend_from_slice(&data);
            }
            Some(earlier) => {
                whole.reserve(declared.max(earlier.len() + data.len()));
                whole.extend_from_slice(&earlier);
                whole.extend_from_slice(&data);
            }
        }
        inspects = inspects && inspect(first.as_deref().unwrap_or(&whole));
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}
