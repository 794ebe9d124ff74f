//! Writing an object's JSON, and where its parts stand in it.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

/// Room to write a new object in: few are larger.
pub(super) const FIRST_SIZE: usize = 8 << 10;

/// What stands before the managed fields.
pub(super) const MANAGED: &[u8] = b"\"managedFields\":";

/// Serialises, noting where the version's digits and the managed fields stand.
pub(super) fn write(
    value: &Map<String, Value>,
    managed: &str,
    revision: u64,
    size: usize,
) -> (Bytes, Range<u32>, Range<u32>) {
    let mut out = Vec::with_capacity(size + size / 8);
    let (mut version_at, mut managed_at) = (0..0, 0..0);
    let empty = Value::Object(Map::new());
    let metadata = value.get("metadata").unwrap_or(&empty);
    out.push(b'{');
    for word in ["apiVersion", "kind"] {
        if let Some(value) = value.get(word) {
            member(&mut out, word, value);
        }
    }
    comma(&mut out);
    out.extend_from_slice(b"\"metadata\":{");
    for (name, value) in metadata.as_object().into_iter().flatten() {
        if name != "resourceVersion" && name != "managedFields" {
            member(&mut out, name, value);
        }
    }
    if !managed.is_empty() {
        comma(&mut out);
        out.extend_from_slice(MANAGED);
        managed_at.start = out.len() as u32;
        out.extend_from_slice(managed.as_bytes());
        managed_at.end = out.len() as u32;
    }
    if revision > 0 {
        comma(&mut out);
        out.extend_from_slice(b"\"resourceVersion\":\"");
        version_at.start = out.len() as u32;
        out.extend_from_slice(revision.to_string().as_bytes());
        version_at.end = out.len() as u32;
        out.push(b'"');
    }
    out.push(b'}');
    for (name, value) in value {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            member(&mut out, name, value);
        }
    }
    out.push(b'}');
    // A copy of the right size: a vector that has grown keeps what it was given.
    (Bytes::copy_from_slice(&out), version_at, managed_at)
}

fn comma(out: &mut Vec<u8>) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
}

fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    comma(out);
    // Writing a Value to memory cannot fail: its keys are strings, and a
    // vector takes every byte.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}
