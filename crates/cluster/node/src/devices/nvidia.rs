//! NVIDIA GPUs, from the files of the kernel module.

use std::{collections::BTreeMap, fs, path::Path};

use super::{Device, Group, folders, joined, label, may_use, text, visible};

pub(super) const RESOURCE: &str = "nvidia.com/gpu";
/// The label that counts the devices.
pub(super) const COUNT_LABEL: &str = "nvidia.com/gpu.count";
const DRIVER: &str = "proc/driver/nvidia";

/// The driver's information about one GPU.
#[derive(Debug, Default)]
struct Information {
    model: Option<String>,
    uuid: Option<String>,
    minor: Option<u32>,
    excluded: bool,
}

impl Information {
    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim().to_owned();
            match name.trim() {
                "Model" => found.model = Some(value).filter(|model| !model.is_empty()),
                // The driver reports question marks for values that it has not
                // read yet.
                "GPU UUID" => {
                    let known = value.starts_with("GPU-") && !value.contains('?');
                    found.uuid = Some(value).filter(|_| known);
                }
                "Device Minor" => found.minor = value.parse().ok(),
                "GPU Excluded" => found.excluded = value == "Yes",
                _ => {}
            }
        }
        found
    }
}

pub(super) fn detect(root: &Path, variable: &impl Fn(&str) -> Option<String>) -> Option<Group> {
    let driver = root.join(DRIVER);
    let mut devices = Vec::new();
    let mut models = Vec::new();
    // Sorted by PCI address, which is the order of
    // CUDA_DEVICE_ORDER=PCI_BUS_ID.
    for folder in folders(&driver.join("gpus")) {
        let Ok(text) = fs::read_to_string(folder.join("information")) else {
            continue;
        };
        let information = Information::parse(&text);
        if information.excluded {
            continue;
        }
        let index = devices.len();
        let device = Device {
            index,
            uuid: information.uuid,
        };
        devices.push((device, information.minor));
        models.push(information.model);
    }
    if devices.is_empty() {
        return None;
    }
    let wanted = variable("CUDA_VISIBLE_DEVICES");
    let all: Vec<Device> = devices.iter().map(|(device, _)| device.clone()).collect();
    let visible = visible::select(&all, wanted.as_deref());
    let usable = |device: &Device| {
        let (_, minor) = &devices[device.index];
        // The index replaces a missing minor number.
        let minor = minor.unwrap_or(u32::try_from(device.index).unwrap_or(u32::MAX));
        !is_partitioned(&driver, minor) && may_use(&root.join(format!("dev/nvidia{minor}")))
    };
    let devices: Vec<Device> = visible.into_iter().filter(usable).collect();
    let model = devices
        .first()
        .and_then(|first| models[first.index].clone());
    Some(Group {
        resource: RESOURCE,
        labels: labels(root, &driver, model.as_deref(), devices.len()),
        devices,
        variables,
    })
}

/// Returns true if a GPU is partitioned into instances (MIG), so that it cannot be allocated as a
/// whole.
fn is_partitioned(driver: &Path, minor: u32) -> bool {
    let slices = driver.join(format!("capabilities/gpu{minor}/mig"));
    let is_partitioned = folders(&slices)
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .any(|name| name.starts_with("gi"));
    if is_partitioned {
        tracing::warn!(
            minor,
            "a GPU in MIG mode is not offered: only whole GPUs are"
        );
    }
    is_partitioned
}

/// Returns the labels of NVIDIA's GPU feature discovery that the driver's files provide.
fn labels(
    root: &Path,
    driver: &Path,
    model: Option<&str>,
    count: usize,
) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([(COUNT_LABEL.to_owned(), count.to_string())]);
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            labels.insert(format!("nvidia.com/{name}"), value);
        }
    };
    set("gpu.present", "true".to_owned());
    set("gpu.replicas", "1".to_owned());
    set("gpu.sharing-strategy", "none".to_owned());
    set("gpu.product", label(model.unwrap_or_default()));
    if let Some(machine) = text(&root.join("sys/class/dmi/id/product_name")) {
        set("gpu.machine", label(&machine));
    }
    let version = text(&driver.join("version"));
    if let Some(version) = version.as_deref().and_then(driver_version) {
        set("cuda.driver-version.full", version.to_owned());
        let parts = ["major", "minor", "revision"];
        for (name, part) in parts.iter().zip(version.split('.')) {
            set(&format!("cuda.driver-version.{name}"), part.to_owned());
        }
    }
    labels
}

/// Parses a line such as `NVRM version: NVIDIA UNIX x86_64 Kernel Module 550.54.15  Tue …`.
fn driver_version(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version =
        |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    line.split_whitespace().find(is_version)
}

/// Returns the variables that frameworks and container tools read.
fn variables(devices: &[&Device]) -> Vec<(String, String)> {
    let uuids: Option<Vec<&String>> = devices.iter().map(|device| device.uuid.as_ref()).collect();
    let (list, order) = match uuids {
        Some(uuids) => (joined(uuids.into_iter()), None),
        None => (
            joined(devices.iter().map(|device| device.index)),
            Some("PCI_BUS_ID"),
        ),
    };
    let mut variables = vec![
        ("CUDA_VISIBLE_DEVICES".to_owned(), list.clone()),
        ("NVIDIA_VISIBLE_DEVICES".to_owned(), list),
    ];
    variables.extend(order.map(|order| ("CUDA_DEVICE_ORDER".to_owned(), order.to_owned())));
    variables
}
