//! An event of a watch as a line of JSON.

use bytes::{Bytes, BytesMut};
use longshore_model::StatusReason;

use crate::fault::Fault;

/// What ends the line of an event.
pub(crate) const LINE_END: &[u8] = b"}\n";

/// Writes what comes before an event's object.
pub(crate) fn line_start(frame: &mut BytesMut, word: &str) {
    frame.extend_from_slice(br#"{"type":""#);
    frame.extend_from_slice(word.as_bytes());
    frame.extend_from_slice(br#"","object":"#);
}

/// Writes an event of the type `word`.
pub(crate) fn line(frame: &mut BytesMut, word: &str, object: &[u8]) {
    frame.reserve(object.len() + 40);
    line_start(frame, word);
    frame.extend_from_slice(object);
    frame.extend_from_slice(LINE_END);
}

/// The event that ends a watch with a fault.
pub(crate) fn error_line(fault: Fault) -> Bytes {
    let status = serde_json::to_vec(fault.status()).unwrap_or_default();
    if fault.status().reason == StatusReason::InternalError {
        tracing::warn!(message = fault.status().message, "a watch ended early");
    }
    let mut frame = BytesMut::new();
    line(&mut frame, "ERROR", &status);
    frame.freeze()
}
