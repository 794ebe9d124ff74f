//! The pods that a DaemonSet creates.

use serde_json::{Value, json};

use super::facts::{DaemonSet, GENERATION_LABEL};
use crate::workload::{REVISION_LABEL, Workload};

/// The taints that the pods of a DaemonSet tolerate, as in Kubernetes.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// What they also tolerate if they use the network of the node.
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
        // One for the same taint is replaced.
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

/// Returns an affinity that requires the node instead of what it required before.
fn pinned(affinity: &Value, node: &str) -> Value {
    let mut affinity = affinity.clone();
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = json!([
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    ]);
    affinity
}

/// Returns the pod to create on a node. `hash` is that of the revision.
pub(super) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Value {
    let template = &set.spec.template;
    let meta = &template["metadata"];
    let mut labels = meta["labels"].clone();
    if let Some(generation) = set.template_generation() {
        labels[GENERATION_LABEL] = generation.into();
    }
    labels[REVISION_LABEL] = hash.into();
    let mut spec = with_tolerations(&template["spec"]);
    spec["affinity"] = pinned(&spec["affinity"], node);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", set.meta.key.name),
            "labels": labels,
            "annotations": meta["annotations"],
            "finalizers": meta["finalizers"],
            "ownerReferences": [DaemonSet::KIND.reference(&set.meta)],
        },
        "spec": spec,
    })
}
