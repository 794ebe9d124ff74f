//! The OpenAPI extension that names the kind of a definition or an operation.

use serde_json::{Value, json};

/// The extension by which a definition or an operation names its kind.
pub(super) const KIND: &str = "x-kubernetes-group-version-kind";

/// A kind as OpenAPI extensions write it.
pub(super) fn kind_value(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}
