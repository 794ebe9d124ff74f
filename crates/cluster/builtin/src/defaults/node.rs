//! Defaults of Nodes.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// Taints a new node as not ready, so that no pod is assigned to it before it reports that it is
/// ready. Kubernetes' admission plugin `TaintNodesByCondition` does the same.
pub(crate) fn on_create(object: &mut Object) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = json::child(object, "spec")
        .entry("taints")
        .or_insert(Value::Null);
    match taints {
        Value::Null => *taints = json!([taint]),
        Value::Array(list) if !list.iter().any(|old| is_same(old, &taint)) => list.push(taint),
        _ => {}
    }
}

fn is_same(left: &Value, right: &Value) -> bool {
    ["key", "effect"]
        .iter()
        .all(|&name| left[name] == right[name])
}

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
