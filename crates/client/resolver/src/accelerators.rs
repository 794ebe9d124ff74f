//! Accelerators of tasks: the counts come from pod limits, the model from node
//! labels.

use longshore_model::facts::NodeFacts;
use serde::Serialize;

pub use crate::devices::{Accelerators, by_device, device, of};
use crate::tasks::Task;

/// Node labels with the accelerator model. Device plugins, node feature discovery
/// and cloud providers set them.
const MODELS: [&str; 7] = [
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-tpu-accelerator",
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
    "aws.amazon.com/neuron.instance-type",
    "habana.ai/device_type",
    "accelerator",
];

/// Returns the model of a node's accelerators, if a label has it.
#[must_use]
pub fn model(node: &NodeFacts) -> Option<&str> {
    let labels = &node.metadata.labels;
    let mut models = MODELS.iter().filter_map(|label| labels.get(*label));
    models.find(|model| !model.is_empty()).map(String::as_str)
}

/// The accelerators of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskAccelerators {
    /// The task's role.
    pub role: String,
    /// The task's index.
    pub index: u32,
    /// Resource name → count.
    pub resources: Accelerators,
    /// The accelerator model, if the node has a label for it:
    /// `NVIDIA-A100-SXM4-40GB`.
    pub model: Option<String>,
}

impl TaskAccelerators {
    /// Combines a task with the facts about its node, if they are known.
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
