//! Tests with fake trees of the kernel's files.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, fs, path::Path};

use k8s_openapi::api::core::v1::Container;
use serde_json::json;

use super::{Allocation, Devices, Group, RESOURCES, detect, distribute, nvidia};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn nvidia(root: &Path, number: u32, uuid: &str) {
    write(
        root,
        &format!("proc/driver/nvidia/gpus/0000:{number:02x}:00.0/information"),
        &format!(
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 123\nGPU UUID: \t {uuid}\n\
             Video BIOS: \t 96.00.a0.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n\
             Bus Location: \t 0000:{number:02x}:00.0\nDevice Minor: \t {number}\n\
             GPU Excluded:\t No\n"
        ),
    );
    write(root, &format!("dev/nvidia{number}"), "");
}

fn amd(root: &Path, node: u32, unique_id: u64) {
    let minor = 127 + node;
    let folder = format!("sys/class/kfd/kfd/topology/nodes/{node}");
    write(root, &format!("{folder}/gpu_id"), "51234\n");
    let properties = format!(
        "cpu_cores_count 0\nsimd_count 880\nsimd_per_cu 4\nvendor_id 4098\ndevice_id 29708\n\
         drm_render_minor {minor}\nunique_id {unique_id}\n"
    );
    write(root, &format!("{folder}/properties"), &properties);
    let bank = "heap_type 1\nsize_in_bytes 68702699520\nflags 0\n";
    write(root, &format!("{folder}/mem_banks/0/properties"), bank);
    let product = format!("sys/class/drm/renderD{minor}/device/product_name");
    write(root, &product, "AMD Instinct MI250X (MCM) OAM\n");
    write(root, &format!("dev/dri/renderD{minor}"), "");
}

/// Three NVIDIA GPUs, one of which the driver has not initialized.
fn machine() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    nvidia(root, 0, "GPU-aaaaaaaa-0000-0000-0000-000000000000");
    nvidia(root, 1, "GPU-bbbbbbbb-0000-0000-0000-000000000000");
    let version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n\
                   GCC version:  gcc version 12.2.0\n";
    write(root, "proc/driver/nvidia/version", version);
    write(root, "sys/class/dmi/id/product_name", "PowerEdge XE9680\n");
    // A CPU and two GPUs.
    write(root, "sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    write(root, "dev/kfd", "");
    amd(root, 1, 0x1234_5678_9abc_def0);
    amd(root, 2, 0);
    folder
}

fn none(_: &str) -> Option<String> {
    None
}

fn group(groups: &[Group], resource: &str) -> Group {
    let found = groups.iter().find(|group| group.resource == resource);
    found.unwrap().clone()
}

fn asks(name: &str, resource: &str, count: u32) -> Container {
    let limits = json!({resource: count.to_string()});
    serde_json::from_value(json!({"name": name, "resources": {"limits": limits}})).unwrap()
}

fn given(allocation: Allocation, name: &str) -> String {
    match allocation {
        Allocation::Allocated(variables) => {
            let found = variables.into_iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value).unwrap_or_default()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn devices_are_distributed_to_the_nodes_in_turn() {
    let machine = machine();
    let groups = detect(machine.path(), none);
    let shares = |nodes: usize| -> Vec<(BTreeMap<String, usize>, Option<String>)> {
        let shares = distribute(&groups, nodes).into_iter().map(Devices::new);
        let seen = |devices: Devices| {
            let count = devices.labels().get(nvidia::COUNT_LABEL).cloned();
            (devices.amounts(), count)
        };
        shares.map(seen).collect()
    };
    let amounts = |count: usize| -> BTreeMap<String, usize> {
        RESOURCES.map(|name| (name.to_owned(), count)).into()
    };
    assert_eq!(shares(1), [(amounts(2), Some("2".to_owned()))]);
    let expected = [
        (amounts(1), Some("1".to_owned())),
        (amounts(1), Some("1".to_owned())),
        (BTreeMap::new(), None),
    ];
    assert_eq!(shares(3), expected);
}

#[test]
fn devices_are_detected() {
    let machine = machine();
    let groups = detect(machine.path(), none);
    let devices = Devices::new(groups.clone());
    let amounts: Vec<_> = devices.amounts().into_iter().collect();
    let expected = [
        ("amd.com/gpu".to_owned(), 2),
        ("nvidia.com/gpu".to_owned(), 2),
    ];
    assert_eq!(amounts, expected);
    let labels = devices.labels();
    let label = |name: &str| labels.get(name).map(String::as_str);
    for (name, value) in [
        ("nvidia.com/gpu.product", "NVIDIA-H200"),
        ("nvidia.com/gpu.count", "2"),
        ("nvidia.com/gpu.present", "true"),
        ("nvidia.com/gpu.machine", "PowerEdge-XE9680"),
        ("nvidia.com/cuda.driver-version.full", "550.54.15"),
        ("nvidia.com/cuda.driver-version.revision", "15"),
        ("amd.com/gpu.product-name", "AMD_Instinct_MI250X_MCM_OAM"),
        ("amd.com/gpu.device-id", "740c"),
        ("amd.com/gpu.vram", "64G"),
        ("amd.com/gpu.cu-count", "220"),
    ] {
        assert_eq!(label(name), Some(value), "{name}");
    }
    assert!(detect(Path::new("/nowhere"), none).is_empty());
}

#[test]
fn unusable_devices_are_not_offered() {
    let machine = machine();
    let root = machine.path();
    // GPUs that are excluded by the driver, partitioned, or without a device
    // file.
    let path = "proc/driver/nvidia/gpus/0000:03:00.0/information";
    let excluded = "GPU UUID: GPU-x\nDevice Minor: 3\nGPU Excluded: Yes\n";
    write(root, path, excluded);
    nvidia(root, 4, "GPU-dddddddd-0000-0000-0000-000000000000");
    write(
        root,
        "proc/driver/nvidia/capabilities/gpu4/mig/gi1/access",
        "",
    );
    nvidia(root, 5, "GPU-eeeeeeee-0000-0000-0000-000000000000");
    fs::remove_file(root.join("dev/nvidia5")).unwrap();
    let groups = detect(root, none);
    assert_eq!(group(&groups, "nvidia.com/gpu").devices.len(), 2);

    // The environment of the process that started the cluster.
    let only = |name: &'static str, value: &'static str| {
        move |asked: &str| (asked == name).then(|| value.to_owned())
    };
    let count = |name, value, resource: &str| {
        let groups = detect(root, only(name, value));
        let found = groups.iter().find(|group| group.resource == resource);
        found.map_or(0, |group| group.devices.len())
    };
    assert_eq!(count("CUDA_VISIBLE_DEVICES", "1", "nvidia.com/gpu"), 1);
    assert_eq!(count("CUDA_VISIBLE_DEVICES", "", "nvidia.com/gpu"), 0);
    assert_eq!(count("CUDA_VISIBLE_DEVICES", "", "amd.com/gpu"), 2);
    assert_eq!(count("HIP_VISIBLE_DEVICES", "1", "amd.com/gpu"), 1);
    assert_eq!(count("ROCR_VISIBLE_DEVICES", "GPU-1234", "amd.com/gpu"), 1);
}

#[test]
fn frameworks_find_their_devices() {
    let machine = machine();
    let devices = Devices::new(detect(machine.path(), none));
    let both = asks("main", "nvidia.com/gpu", 2);
    let list = "GPU-aaaaaaaa-0000-0000-0000-000000000000,GPU-bbbbbbbb-0000-0000-0000-000000000000";
    for name in ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"] {
        assert_eq!(given(devices.allocate("u", &both, &[]), name), list);
    }
    // Devices without a UUID are named by index.
    let both = asks("main", "amd.com/gpu", 2);
    let allocation = devices.allocate("u", &both, &[]);
    let shown = given(allocation.clone(), "ROCR_VISIBLE_DEVICES");
    assert_eq!(shown, "GPU-123456789abcdef0,1");
    assert_eq!(given(allocation, "HIP_VISIBLE_DEVICES"), "0,1");

    let unknown = tempfile::tempdir().unwrap();
    nvidia(
        unknown.path(),
        0,
        "GPU-????????-????-????-????-????????????",
    );
    let devices = Devices::new(detect(unknown.path(), none));
    let allocation = devices.allocate("u", &asks("main", "nvidia.com/gpu", 1), &[]);
    assert_eq!(given(allocation.clone(), "CUDA_VISIBLE_DEVICES"), "0");
    assert_eq!(given(allocation, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");

    // A container that requests no devices gets no variables.
    let plain = asks("plain", "cpu", 1);
    assert_eq!(
        devices.allocate("v", &plain, &[]),
        Allocation::Allocated(Vec::new())
    );
}

#[test]
fn no_device_is_allocated_twice() {
    let machine = machine();
    let devices = Devices::new(detect(machine.path(), none));
    let name = "CUDA_VISIBLE_DEVICES";
    let one = |container: &str| asks(container, "nvidia.com/gpu", 1);
    let first = given(devices.allocate("a", &one("main"), &[]), name);
    let second = given(devices.allocate("b", &one("main"), &[]), name);
    assert_ne!(first, second);
    // A restarted container keeps its device.
    assert_eq!(given(devices.allocate("a", &one("main"), &[]), name), first);
    let busy = devices.allocate("c", &one("main"), &[]);
    let text = "container main asks for 1 of nvidia.com/gpu, and 0 of the node's 2 are free";
    assert_eq!(busy, Allocation::Busy(text.to_owned()));
    let never = devices.allocate("c", &asks("main", "nvidia.com/gpu", 3), &[]);
    let text = "container main asks for 3 of nvidia.com/gpu, and the node has 2";
    assert_eq!(never, Allocation::Impossible(text.to_owned()));
    // The next container of a pod can get the device of its init container.
    assert!(matches!(
        devices.allocate("a", &one("next"), &[]),
        Allocation::Busy(_)
    ));
    assert_eq!(
        given(devices.allocate("a", &one("next"), &["main"]), name),
        first
    );
    assert!(matches!(
        devices.allocate("b", &one("other"), &[]),
        Allocation::Busy(_)
    ));
    devices.release("b");
    assert_eq!(
        given(devices.allocate("c", &one("main"), &[]), name),
        second
    );
    // All or none: one device of the first vendor is free, and none of the
    // second.
    let mut mixed = asks("main", "amd.com/gpu", 1);
    let limits = mixed.resources.as_mut().unwrap().limits.as_mut().unwrap();
    let amount = k8s_openapi::apimachinery::pkg::api::resource::Quantity("1".to_owned());
    limits.insert("nvidia.com/gpu".to_owned(), amount);
    assert!(matches!(
        devices.allocate("d", &mixed, &[]),
        Allocation::Busy(_)
    ));
    let both = asks("main", "amd.com/gpu", 2);
    assert!(matches!(
        devices.allocate("e", &both, &[]),
        Allocation::Allocated(_)
    ));
}
