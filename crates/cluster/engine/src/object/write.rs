//! Encodes an object as JSON and records the positions of its parts.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use longshore_model::{Gvk, kind::builtin};
use serde_json::{Map, Value};

/// Initial buffer size; few objects are larger.
pub(super) const FIRST_SIZE: usize = 8 << 10;

/// The text before the managed fields.
pub(super) const MANAGED: &[u8] = b"\"managedFields\":";

/// The order of metadata fields in built-in kinds, which equals the order in Go's `ObjectMeta`.
const METADATA: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
];

/// API groups of built-in kinds that are served as views of other kinds.
const VIEW_GROUPS: [&str; 2] = ["autoscaling", "events.k8s.io"];

/// Returns true if Kubernetes encodes the kind from a Go struct, which puts `kind` before
/// `apiVersion`. Custom objects are maps in Go and are sorted by key.
fn is_builtin(api_version: &str, kind: &str) -> bool {
    let gvk = Gvk::from_api_version(api_version, kind);
    builtin(&gvk.group, kind).is_some() || VIEW_GROUPS.contains(&&*gvk.group)
}

/// Moves `kind` before `apiVersion` in a stored object of a built-in kind:
/// stores of earlier versions have `apiVersion` first. The length is unchanged,
/// so all positions stay valid.
pub(crate) fn kind_first(text: &[u8]) -> Cow<'_, [u8]> {
    let split = || {
        let rest = text.strip_prefix(b"{\"apiVersion\":\"")?;
        let (version, rest) = rest.split_at(rest.iter().position(|byte| *byte == b'"')?);
        let rest = rest.strip_prefix(b"\",\"kind\":\"")?;
        let (kind, rest) = rest.split_at(rest.iter().position(|byte| *byte == b'"')?);
        Some((version, kind, rest))
    };
    let Some((version, kind, rest)) = split() else {
        return text.into();
    };
    let parts = [
        b"{\"kind\":\"",
        kind,
        b"\",\"apiVersion\":\"",
        version,
        rest,
    ];
    parts.concat().into()
}

/// Encodes the object and records the positions of the version's digits and of
/// the managed fields.
pub(super) fn write(
    value: &Map<String, Value>,
    managed: &str,
    revision: u64,
    size: usize,
) -> (Bytes, Range<u32>, Range<u32>) {
    let mut out = Vec::with_capacity(size + size / 8);
    let (mut version_at, mut managed_at) = (0..0, 0..0);
    let empty = Map::new();
    let metadata = value.get("metadata").and_then(Value::as_object);
    let metadata = metadata.unwrap_or(&empty);
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let official = is_builtin(text("apiVersion"), text("kind"));
    let [first, second] = match official {
        true => ["kind", "apiVersion"],
        false => ["apiVersion", "kind"],
    };
    out.push(b'{');
    for word in [first, second] {
        if let Some(value) = value.get(word) {
            member(&mut out, word, value);
        }
    }
    comma(&mut out);
    out.extend_from_slice(b"\"metadata\":{");
    let order: &[&str] = if official { &METADATA } else { &[] };
    let put_version = |out: &mut Vec<u8>| {
        if revision == 0 {
            return 0..0;
        }
        comma(out);
        out.extend_from_slice(b"\"resourceVersion\":\"");
        let start = out.len() as u32;
        out.extend_from_slice(revision.to_string().as_bytes());
        let end = out.len() as u32;
        out.push(b'"');
        start..end
    };
    for name in order {
        match metadata.get(*name) {
            _ if *name == "resourceVersion" => version_at = put_version(&mut out),
            Some(value) => member(&mut out, name, value),
            None => {}
        }
    }
    for (name, value) in metadata {
        if !order.contains(&name.as_str()) && name != "resourceVersion" && name != "managedFields" {
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
    if !official {
        version_at = put_version(&mut out);
    }
    out.push(b'}');
    for (name, value) in value {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            member(&mut out, name, value);
        }
    }
    out.push(b'}');
    // Copy to a buffer of the exact size: a grown vector keeps its excess
    // capacity.
    (Bytes::copy_from_slice(&out), version_at, managed_at)
}

fn comma(out: &mut Vec<u8>) {
    if !out.ends_with(b"{") {
        out.push(b',');
    }
}

fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    comma(out);
    // Writing a Value to memory cannot fail: its keys are strings, and a vector
    // accepts every byte.
    let _ = serde_json::to_writer(&mut *out, name);
    out.push(b':');
    let _ = serde_json::to_writer(&mut *out, value);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn text(object: &Value) -> String {
        let (bytes, version, managed) = write(object.as_object().unwrap(), "[1]", 7, 100);
        let part = |at: Range<u32>| &bytes[at.start as usize..at.end as usize];
        assert_eq!(part(version), b"7");
        assert_eq!(part(managed), b"[1]");
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn built_in_kinds_are_encoded_like_go_structs() {
        let metadata = json!({
            "annotations": {"a": "1"}, "creationTimestamp": "t", "finalizers": ["f"],
            "labels": {"l": "1"}, "name": "n", "namespace": "s", "uid": "u", "generation": 1,
        });
        let of = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}});
        assert_eq!(
            text(&of("apps/v1", "Deployment")),
            r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7","generation":1,"creationTimestamp":"t","labels":{"l":"1"},"annotations":{"a":"1"},"finalizers":["f"],"managedFields":[1]},"spec":{}}"#
        );
        // Go sorts maps. Custom objects are also sorted, except for the version.
        let custom = text(&of("example.com/v1", "Deployment"));
        let start =
            r#"{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"annotations":"#;
        assert!(custom.starts_with(start), "{custom}");
    }

    #[test]
    fn kind_moves_before_api_version_in_older_text() {
        for (old, new) in [
            (
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#,
                r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#,
            ),
            (
                r#"{"kind":"Pod","apiVersion":"v1"}"#,
                r#"{"kind":"Pod","apiVersion":"v1"}"#,
            ),
            ("{}", "{}"),
            (r#"{"apiVersion":"v1"#, r#"{"apiVersion":"v1"#),
        ] {
            assert_eq!(&*kind_first(old.as_bytes()), new.as_bytes());
        }
    }
}
