//! GPUs of this machine: what the kernel's files say of them, what the node
//! offers, and which container has which.
//!
//! Everything is read from files below a root, `/` on a real machine, so that
//! no vendor's library has to be there, and tests bring a tree of their own.

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

/// The resources that this node may offer.
pub(crate) const RESOURCES: [&str; 2] = [nvidia::RESOURCE, amd::RESOURCE];
/// The labels that describe them begin so; those of an earlier start are removed.
pub(crate) const LABELS: [&str; 2] = ["nvidia.com/", "amd.com/gpu."];
/// The longest value of a label, in bytes.
const LABEL_LENGTH: usize = 63;

/// A whole device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// Its place among the machine's devices, as the vendor's runtime counts.
    index: usize,
    /// As in `GPU-8932f937-d72c-4106-c12f-20bd9faed9f6`; `None` where the driver
    /// does not tell.
    uuid: Option<String>,
}

/// The devices of one vendor.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) resource: &'static str,
    pub(crate) devices: Vec<Device>,
    /// Labels of the node, as the vendor's discovery sets them.
    pub(crate) labels: BTreeMap<String, String>,
    variables: fn(&[&Device]) -> Vec<(String, String)>,
}

/// The devices below `root` that this process may use. A variable such as
/// `CUDA_VISIBLE_DEVICES` in the environment of this process leaves some out.
pub(crate) fn detect(root: &Path, variable: impl Fn(&str) -> Option<String>) -> Vec<Group> {
    let found = [
        nvidia::detect(root, &variable),
        amd::detect(root, &variable),
    ];
    let found = found.into_iter().flatten();
    found.filter(|group| !group.devices.is_empty()).collect()
}

/// The text of a small file without the white space around it.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether this process may use a device's file.
fn may_use(path: &Path) -> bool {
    let allowed = rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK);
    if let Err(error) = allowed {
        tracing::warn!(path = %path.display(), %error, "a GPU is not offered: its file cannot be used");
        return false;
    }
    true
}

/// A text as the value of a label: with dashes for what a label cannot hold.
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

/// Numbers and UUIDs as one value of a variable.
fn joined<T: ToString>(parts: impl Iterator<Item = T>) -> String {
    let parts: Vec<String> = parts.map(|part| part.to_string()).collect();
    parts.join(",")
}
