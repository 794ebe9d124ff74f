//! Encodes watch events as lines of JSON.

use bytes::{Bytes, BytesMut};
use longshore_model::StatusReason;

use crate::status_error::StatusError;

/// End of an event's line.
pub(crate) const LINE_END: &[u8] = b"}\n";

/// Writes the part of an event before its object.
pub(crate) fn line_start(frame: &mut BytesMut, word: &str) {
    frame.extend_from_slice(br#"{"type":""#);
    frame.extend_from_slice(word.as_bytes());
    frame.extend_from_slice(br#"","object":"#);
}

/// Writes an event of type `word`.
pub(crate) fn line(frame: &mut BytesMut, word: &str, object: &[u8]) {
    frame.reserve(object.len() + 40);
    line_start(frame, word);
    frame.extend_from_slice(object);
    frame.extend_from_slice(LINE_END);
}

/// Encodes the ERROR event that ends a watch.
pub(crate) fn error_line(error: StatusError) -> Bytes {
    let status = serde_json::to_vec(error.status()).unwrap_or_default();
    if error.status().reason == StatusReason::InternalError {
        tracing::warn!(message = error.status().message, "a watch ended early");
    }
    let mut frame = BytesMut::new();
    line(&mut frame, "ERROR", &status);
    frame.freeze()
}
