//! Accelerators of tasks: from pods' limits, and which model from their nodes.

use serde::Serialize;

pub use crate::devices::{Accelerators, by_device, device, of};
use crate::{facts::NodeFacts, tasks::Task};

/// Labels of nodes with the model of their accelerators, set by the plugins'
/// discovery and by clouds.
const MODELS: [&str; 7] = [
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-tpu-accelerator",
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
    "aws.amazon.com/neuron.instance-type",
    "habana.ai/device_type",
    "accelerator",
];

/// The model of a node's accelerators, where a label gives it.
#[must_use]
pub fn model(node: &NodeFacts) -> Option<&str> {
    let labels = &node.metadata.labels;
    let mut labelled = MODELS.iter().filter_map(|label| labels.get(*label));
    labelled.find(|model| !model.is_empty()).map(String::as_str)
}

/// The accelerators of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskAccelerators {
    /// The task's role.
    pub role: String,
    /// Its index.
    pub index: u32,
    /// Resource name → how many.
    pub resources: Accelerators,
    /// Their model, where the node has a label with it: `NVIDIA-A100-SXM4-40GB`.
    pub model: Option<String>,
}

impl TaskAccelerators {
    /// Of a task on a node, if that is known.
    #[must_use]
    pub fn new(task: &Task, node: Option<&NodeFacts>) -> Self {
        let model = node
            .and_then(model)
            .filter(|_| !task.accelerators.is_empty());
        Self {
            role: task.role.clone(),
            index: task.index,
            resources: task.accelerators.clone(),
            model: model.map(str::to_owned),
        }
    }
}
