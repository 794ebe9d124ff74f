//! The tolerations of the pods of DaemonSets.

use serde_json::{Value, json};

/// The taints that the pods of a DaemonSet tolerate, as in Kubernetes.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// The taint that pods in the network of the node also tolerate.
const TOLERATED_WITH_HOST_NETWORK: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Returns a pod spec with the tolerations of DaemonSets.
pub(super) fn with_tolerations(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    let host_network = spec["hostNetwork"] == true;
    let more = host_network.then_some(TOLERATED_WITH_HOST_NETWORK);
    for (key, effect) in TOLERATED.into_iter().chain(more) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        // A toleration for the same taint is replaced.
        let same = tolerations.iter_mut().find(|known| {
            known["key"] == key
                && known["effect"] == effect
                && known["operator"] == "Exists"
                && known["value"].as_str().unwrap_or_default().is_empty()
        });
        match same {
            Some(known) => *known = toleration,
            None => tolerations.push(toleration),
        }
    }
    if spec.is_object() {
        spec["tolerations"] = tolerations.into();
    }
    spec
}
