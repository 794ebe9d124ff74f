//! Reads a response's body into one buffer.

use bytes::{Bytes, BytesMut};
use http::{Response, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use kube_client::client::Body;

/// No more is set aside on the word of a header alone.
const TRUSTED: usize = 256 << 20;

/// The whole body as one buffer, grown in place: the chunks are not kept
/// beside it, so that memory stays near the size of the body.
pub(super) async fn read(response: Response<Body>) -> Result<Bytes, kube_client::Error> {
    read_with(response, 0, |_| false).await
}

/// As [`read`], of about so many bytes as are `expected`, for servers do not
/// declare them; `look` sees what has come so far, as long as it wants to.
pub(super) async fn read_with(
    response: Response<Body>,
    expected: usize,
    mut look: impl FnMut(&[u8]) -> bool,
) -> Result<Bytes, kube_client::Error> {
    let declared = response
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok())
        .unwrap_or(expected);
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    let (mut first, mut looks): (Option<Bytes>, bool) = (None, true);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        match first.take() {
            // A body that comes in one piece, as in process, is not copied.
            None if whole.is_empty() => first = Some(data),
            None => whole.extend_from_slice(&data),
            Some(earlier) => {
                whole.reserve(declared.min(TRUSTED).max(earlier.len() + data.len()));
                whole.extend_from_slice(&earlier);
                whole.extend_from_slice(&data);
            }
        }
        looks = looks && look(first.as_deref().unwrap_or(&whole));
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}
