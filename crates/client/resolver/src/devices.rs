//! Device resources in pod limits, and the device names that frameworks use.

use std::collections::BTreeMap;

use longshore_model::facts::PodFacts;

/// Resource name → count for one task.
pub type Accelerators = BTreeMap<String, u64>;

/// Resource names that device plugins register, and the device names that
/// frameworks use.
const DEVICES: [(&str, &str); 15] = [
    ("nvidia.com/gpu", "GPU"),
    ("nvidia.com/gpu.shared", "GPU"),
    ("amd.com/gpu", "GPU"),
    ("gpu.intel.com/i915", "XPU"),
    ("gpu.intel.com/xe", "XPU"),
    ("google.com/tpu", "TPU"),
    ("aws.amazon.com/neuron", "NEURON"),
    ("aws.amazon.com/neurondevice", "NEURON"),
    ("aws.amazon.com/neuroncore", "NEURON_CORE"),
    ("habana.ai/gaudi", "HPU"),
    ("huawei.com/Ascend910", "NPU"),
    ("huawei.com/npu", "NPU"),
    ("cambricon.com/mlu", "MLU"),
    ("metax-tech.com/gpu", "GPU"),
    ("qualcomm.com/qaic", "QAIC"),
];
/// MIG slices of a GPU have their size in the resource name:
/// `nvidia.com/mig-1g.5gb`.
const MIG_PREFIX: &str = "nvidia.com/mig-";

/// Returns the framework's device name for a resource. Returns `None` if the
/// resource is not an accelerator.
///
/// ```
/// use longshore_resolver::accelerators::device;
/// assert_eq!(device("nvidia.com/gpu"), Some("GPU"));
/// assert_eq!(device("nvidia.com/mig-1g.5gb"), Some("GPU"));
/// assert_eq!(device("google.com/tpu"), Some("TPU"));
/// assert_eq!(device("cpu"), None);
/// ```
#[must_use]
pub fn device(resource: &str) -> Option<&'static str> {
    if resource.starts_with(MIG_PREFIX) {
        return Some("GPU");
    }
    let known = DEVICES.iter().find(|(name, _)| *name == resource);
    known.map(|(_, device)| *device)
}

/// Returns the accelerators in the limits of a pod's containers.
#[must_use]
pub fn of(pod: &PodFacts) -> Accelerators {
    let mut found = Accelerators::new();
    for container in &pod.spec.containers {
        for (resource, quantity) in &container.resources.limits {
            let number = quantity.parse().ok();
            if let (Some(_), Some(number @ 1..)) = (device(resource), number) {
                let sum = found.entry(resource.clone()).or_insert(0_u64);
                *sum = sum.saturating_add(number);
            }
        }
    }
    found
}

/// Sums the counts by the device names that frameworks use: `{"GPU": 2}`.
#[must_use]
pub fn by_device(resources: &Accelerators) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (resource, number) in resources {
        if let Some(device) = device(resource) {
            let sum = found.entry(device.to_owned()).or_insert(0_u64);
            *sum = sum.saturating_add(*number);
        }
    }
    found
}

/// Returns what every one of the tasks has: the minimum count of each device.
pub(crate) fn minimum<'a>(tasks: impl Iterator<Item = &'a Accelerators>) -> BTreeMap<String, u64> {
    let per_task = tasks.map(by_device);
    let common = per_task.reduce(|minimum, other| {
        let both = minimum.into_iter().filter_map(|(device, number)| {
            let other = *other.get(&device)?;
            Some((device, number.min(other)))
        });
        both.collect()
    });
    common.unwrap_or_default()
}
