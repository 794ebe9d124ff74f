//! Reads the body of a response into one buffer.

use bytes::{Bytes, BytesMut};
use http::{Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use kube_client::client::Body;

/// The maximum number of bytes that a `Content-Length` header alone can reserve. The
/// buffer of a larger body grows as data arrives.
const RESERVE_LIMIT: usize = 256 << 20;

/// Reads the whole body into one buffer. The buffer grows in place and no chunks are
/// kept, so that the memory in use stays close to the size of the body.
pub(super) async fn read(response: Response<Body>) -> Result<Bytes, kube_client::Error> {
    read_with(response, 0, |_| false).await
}

/// As [`read`], with an expected size in bytes, which is used if the response has no
/// `Content-Length` header. `inspect` is called with the body read so far, after each
/// chunk, until it returns false.
pub(super) async fn read_with(
    response: Response<Body>,
    expected: usize,
    mut inspect: impl FnMut(&[u8]) -> bool,
) -> Result<Bytes, kube_client::Error> {
    let declared = response
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok())
        .unwrap_or(expected);
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    let (mut first, mut inspects): (Option<Bytes>, bool) = (None, true);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        match first.take() {
            // A body of a single chunk, as from a server in this process, is not copied.
            None if whole.is_empty() => first = Some(data),
            None => whole.extend_from_slice(&data),
            Some(earlier) => {
                whole.reserve(declared.min(RESERVE_LIMIT).max(earlier.len() + data.len()));
                whole.extend_from_slice(&earlier);
                whole.extend_from_slice(&data);
            }
        }
        inspects = inspects && inspect(first.as_deref().unwrap_or(&whole));
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}
