//! AMD GPUs, from the topology of the kernel's compute driver (KFD).

use std::{collections::BTreeMap, path::Path};

use super::{Device, Group, folders, joined, label, may_use, text, visible};

pub(super) const RESOURCE: &str = "amd.com/gpu";
const TOPOLOGY: &str = "sys/class/kfd/kfd/topology/nodes";

/// The driver's information about one GPU.
struct Node {
    unique_id: u64,
    device_id: u64,
    render_minor: u64,
    simd_count: u64,
    simd_per_unit: u64,
    memory: u64,
}

impl Node {
    /// Reads a node. Returns `None` if the node is a CPU.
    fn read(folder: &Path) -> Option<Self> {
        let id: u64 = text(&folder.join("gpu_id"))?.parse().ok()?;
        if id == 0 {
            return None;
        }
        let properties = properties(&folder.join("properties"));
        let number = |name: &str| properties.get(name).copied().unwrap_or(0);
        let banks = folders(&folder.join("mem_banks"));
        let memory = banks
            .iter()
            .filter_map(|bank| properties_of_memory(bank))
            .fold(0_u64, u64::saturating_add);
        Some(Self {
            unique_id: number("unique_id"),
            device_id: number("device_id"),
            render_minor: number("drm_render_minor"),
            simd_count: number("simd_count"),
            simd_per_unit: number("simd_per_cu"),
            memory,
        })
    }
}

/// Returns the size of a memory bank in the GPU's own memory, in bytes.
fn properties_of_memory(bank: &Path) -> Option<u64> {
    properties(&bank.join("properties"))
        .get("size_in_bytes")
        .copied()
}

/// Parses lines of a name and a number.
fn properties(path: &Path) -> BTreeMap<String, u64> {
    let text = text(path).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

pub(super) fn detect(root: &Path, variable: &impl Fn(&str) -> Option<String>) -> Option<Group> {
    let mut nodes: Vec<_> = folders(&root.join(TOPOLOGY));
    // Sorted by number: "10" comes after "9".
    nodes.sort_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.parse::<u32>().ok())
    });
    let nodes: Vec<Node> = nodes.iter().filter_map(|path| Node::read(path)).collect();
    if nodes.is_empty() || !may_use(&root.join("dev/kfd")) {
        return None;
    }
    let all: Vec<Device> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| Device {
            index,
            uuid: (node.unique_id != 0).then(|| format!("GPU-{:016x}", node.unique_id)),
        })
        .collect();
    let visible = visible::select(&all, variable("ROCR_VISIBLE_DEVICES").as_deref());
    // The second variable selects among the devices that the first one selects.
    let visible = visible::select(&visible, variable("HIP_VISIBLE_DEVICES").as_deref());
    let usable = |device: &Device| {
        let minor = nodes[device.index].render_minor;
        may_use(&root.join(format!("dev/dri/renderD{minor}")))
    };
    let devices: Vec<Device> = visible.into_iter().filter(usable).collect();
    let labels = devices
        .first()
        .map(|first| labels(root, &nodes[first.index]));
    Some(Group {
        resource: RESOURCE,
        labels: labels.unwrap_or_default(),
        devices,
        variables,
    })
}

/// Returns the labels that AMD's node labeller sets.
fn labels(root: &Path, node: &Node) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            labels.insert(format!("amd.com/gpu.{name}"), value);
        }
    };
    set("device-id", format!("{:x}", node.device_id));
    set("simd-count", node.simd_count.to_string());
    if let Some(units) = node.simd_count.checked_div(node.simd_per_unit) {
        set("cu-count", units.to_string());
    }
    if node.memory > 0 {
        set("vram", format!("{}G", node.memory.div_ceil(1 << 30)));
    }
    let device = format!("sys/class/drm/renderD{}/device", node.render_minor);
    if let Some(name) = text(&root.join(device).join("product_name")) {
        set(
            "product-name",
            label(&name.replace(' ', "_").replace(['(', ')'], "")),
        );
    }
    labels
}

/// Returns the variables that ROCm's runtime and HIP read. HIP's indices refer
/// to the devices that the runtime exposes.
fn variables(devices: &[&Device]) -> Vec<(String, String)> {
    let shown = devices.iter().map(|device| match &device.uuid {
        Some(uuid) => uuid.clone(),
        None => device.index.to_string(),
    });
    vec![
        ("ROCR_VISIBLE_DEVICES".to_owned(), joined(shown)),
        ("HIP_VISIBLE_DEVICES".to_owned(), joined(0..devices.len())),
    ]
}
