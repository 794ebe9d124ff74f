//! Table rows of Nodes.

use jiff::Timestamp;
use serde_json::Value;

use super::{age_cell, condition, list, name, or, text};

pub(crate) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let address = |kind| {
        let found = list(node, "/status/addresses")
            .iter()
            .find(|a| text(a, "/type") == kind);
        or(
            found.map_or("", |address| text(address, "/address")),
            "<none>",
        )
        .to_owned()
    };
    let info = |field| or(text(node, field), "<unknown>").to_owned();
    vec![
        name(node),
        status(node).into(),
        roles(node).into(),
        age_cell(node, now),
        text(node, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("/status/nodeInfo/osImage").into(),
        info("/status/nodeInfo/kernelVersion").into(),
        info("/status/nodeInfo/containerRuntimeVersion").into(),
    ]
}

fn status(node: &Value) -> String {
    let ready = condition(node, "Ready").map(|condition| text(condition, "/status"));
    let word = match ready {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = node
        .pointer("/spec/unschedulable")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    if closed {
        format!("{word},SchedulingDisabled")
    } else {
        word.to_owned()
    }
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let role = key.strip_prefix("node-role.kubernetes.io/");
            role.or_else(|| value.as_str().filter(|_| key == "kubernetes.io/role"))
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    or(&roles.join(","), "<none>").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unschedulable_node_with_roles() {
        let node = json!({
            "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
            "spec": {"unschedulable": true},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.34.0", "osImage": "Linux"},
            },
        });
        assert_eq!(
            Value::from(cells(&node, Timestamp::UNIX_EPOCH)),
            json!([
                "n",
                "Ready,SchedulingDisabled",
                "a,b",
                "<unknown>",
                "v1.34.0",
                "127.0.0.1",
                "<none>",
                "Linux",
                "<unknown>",
                "<unknown>"
            ])
        );
    }
}
