//! The pods that a DaemonSet creates.

use serde_json::{Value, json};

use super::{
    facts::{DaemonSet, GENERATION_LABEL},
    tolerations::with_tolerations,
};
use crate::workload::{REVISION_LABEL, Workload};

/// Returns an affinity whose node requirement is replaced by this node.
fn pinned(affinity: &Value, node: &str) -> Value {
    let mut affinity = affinity.clone();
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = json!([
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    ]);
    affinity
}

/// Returns the pod to create on a node. `hash` is the hash of the revision.
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
