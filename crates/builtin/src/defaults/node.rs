//! Defaults of Nodes.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// Sets the networks, and the allocatable resources to the capacity.
pub(crate) fn fill(object: &mut Object) {
    networks(json::child(object, "spec"));
    let status = json::child(object, "status");
    if let Some(capacity) = status.get("capacity").cloned() {
        json::default(status, "allocatable", capacity);
    }
}

/// Keeps `podCIDR` and the first entry of `podCIDRs` equal; if they differ,
/// `podCIDR` wins.
fn networks(spec: &mut Object) {
    let list = spec.get("podCIDRs").and_then(Value::as_array);
    let first = list.and_then(|list| list.first()).cloned();
    let first = first.filter(|first| *first != "");
    match (json::text(spec, "podCIDR"), first) {
        ("", Some(first)) => {
            spec.insert("podCIDR".into(), first);
        }
        (alone, first) if !alone.is_empty() && first.as_ref().is_none_or(|it| it != alone) => {
            let list = json!([alone]);
            spec.insert("podCIDRs".into(), list);
        }
        _ => {}
    }
}
