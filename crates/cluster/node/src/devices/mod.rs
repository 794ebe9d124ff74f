//! GPUs of this machine: discovery from the kernel's files, the resources that
//! the node offers, and their allocation to containers.
//!
//! All files are read below a root, which is `/` on a real machine. No vendor
//! library is needed, and tests use their own directory trees.

mod allocate;
mod amd;
mod nvidia;
mod visible;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

pub(crate) use allocate::{Allocation, Devices};

/// The resources that this node can offer.
pub(crate) const RESOURCES: [&str; 2] = [nvidia::RESOURCE, amd::RESOURCE];
/// Prefixes of the labels that describe devices; outdated labels with these
/// prefixes are removed.
pub(crate) const LABELS: [&str; 2] = ["nvidia.com/", "amd.com/gpu."];
/// The maximum length of a label value in bytes.
const LABEL_LENGTH: usize = 63;

/// A whole device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// The index among the machine's devices, in the order of the vendor's runtime.
    index: usize,
    /// The UUID, for example `GPU-8932f937-d72c-4106-c12f-20bd9faed9f6`; `None` if the driver does
    /// not report it.
    uuid: Option<String>,
}

/// The devices of one vendor.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) resource: &'static str,
    pub(crate) devices: Vec<Device>,
    /// Node labels, with the same names and values as from the vendor's discovery.
    pub(crate) labels: BTreeMap<String, String>,
    variables: fn(&[&Device]) -> Vec<(String, String)>,
}

/// Returns the devices below `root` that this process may use. Variables such
/// as `CUDA_VISIBLE_DEVICES` in this process's environment restrict them.
pub(crate) fn detect(root: &Path, variable: impl Fn(&str) -> Option<String>) -> Vec<Group> {
    let found = [
        nvidia::detect(root, &variable),
        amd::detect(root, &variable),
    ];
    let found = found.into_iter().flatten();
    found.filter(|group| !group.devices.is_empty()).collect()
}

/// Distributes the devices of this machine to `nodes` nodes in turn.
pub(crate) fn distribute(groups: &[Group], nodes: usize) -> Vec<Vec<Group>> {
    let share = |node: usize| {
        let groups = groups.iter().map(|group| {
            let devices = group.devices.iter().skip(node).step_by(nodes);
            let mut share = Group {
                devices: devices.cloned().collect(),
                ..group.clone()
            };
            if let Some(count) = share.labels.get_mut(nvidia::COUNT_LABEL) {
                *count = share.devices.len().to_string();
            }
            share
        });
        groups.filter(|group| !group.devices.is_empty()).collect()
    };
    (0..nodes).map(share).collect()
}

/// Returns the trimmed text of a small file.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the subdirectories of a directory, sorted by name.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns true if this process may use a device file.
fn may_use(path: &Path) -> bool {
    let allowed = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK);
    if let Err(error) = allowed {
        tracing::warn!(path = %path.display(), %error, "a GPU is not offered: its file cannot be used");
        return false;
    }
    true
}

/// Converts text to a label value; dashes replace invalid characters.
fn label(text: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
        true => c,
        false => '-',
    };
    let mut value: String = text.trim().chars().map(plain).collect();
    value.truncate(LABEL_LENGTH);
    let is_edge = |c: char| !c.is_ascii_alphanumeric();
    value.trim_matches(is_edge).to_owned()
}

/// Joins numbers or UUIDs to the value of a variable.
fn joined<T: ToString>(parts: impl Iterator<Item = T>) -> String {
    let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
    parts.join(",")
}
