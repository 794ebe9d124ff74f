//! The admission plugin PodTopologyLabels: pods get the zone and the region of their node as
//! labels.

use longshore_builtin::json as js;
use serde_json::Value;

use super::JsonObject;
use crate::state::State;

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// Sets the labels of a new pod that names its node, or of a pod that is assigned to a node.
pub(super) fn apply_to_pod(state: &State, pod: &mut JsonObject) {
    let name = js::text(pod, "spec.nodeName");
    if name.is_empty() {
        return;
    }
    let nodes = state.kinds.builtin_id("", "Node");
    let node = nodes.and_then(|id| state.table(id).objects.get(name));
    let Some(labels) = node.map(|node| node.labels()) else {
        return;
    };
    for label in LABELS {
        if let Some(value) = labels.get(label) {
            let labels = js::child(js::child(pod, "metadata"), "labels");
            labels.insert(label.to_owned(), Value::from(value.clone()));
        }
    }
}
