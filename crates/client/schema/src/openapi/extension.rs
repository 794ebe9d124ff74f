//! The OpenAPI extension that contains the kind of a definition or an
//! operation.

use serde_json::{Value, json};

/// The name of the extension.
pub(super) const KIND: &str = "x-kubernetes-group-version-kind";

/// The value of the extension.
pub(super) fn kind_value(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}
