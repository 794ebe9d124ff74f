//! Volumes in memory (`emptyDir.medium: Memory`), for agents that may mount file systems, which
//! requires root.
//!
//! A process that only waits holds the mounts in its mount namespace, and each container of the pod
//! starts with a copy of these mounts. No other namespace has the mounts, so the kernel frees the
//! memory with the last process, even if the agent is killed.

use std::path::Path;

use k8s_openapi::api::core::v1::{Pod, Volume};
use longshore_model::Quantity;

use crate::sandbox::{Command, view::Operation};

/// The mode of a volume, and of a volume that belongs to a group.
const MODE: u32 = 0o777;
const GROUP_MODE: u32 = 0o2777;

/// Returns true if a volume must be in memory.
pub(crate) fn is_in_memory(volume: &Volume) -> bool {
    let medium = volume
        .empty_dir
        .as_ref()
        .and_then(|dir| dir.medium.as_deref());
    medium == Some("Memory")
}

/// Returns the command of the process that holds the pod's volumes in memory, or `None` if the pod
/// has none. `folder` has a directory for each volume.
pub(crate) fn holder(pod: &Pod, folder: &Path, group: Option<u32>) -> Option<Command> {
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let mounts = volumes
        .filter(|volume| is_in_memory(volume))
        .map(|volume| Operation::Tmpfs {
            at: folder.join(&volume.name),
            mode: group.map_or(MODE, |_| GROUP_MODE),
            group,
            size: size(volume),
        });
    let mut operations = vec![Operation::Private];
    operations.extend(mounts);
    (operations.len() > 1).then(|| Command {
        operations,
        working_folder: folder.to_owned(),
        ..Command::default()
    })
}

/// Returns the maximum size of a volume in bytes, which the kernel enforces.
fn size(volume: &Volume) -> Option<u64> {
    let limit = volume.empty_dir.as_ref()?.size_limit.as_ref()?;
    let limit: Quantity = limit.0.parse().ok()?;
    // The conversion saturates. A size of 0 would mean no limit.
    Some(limit.value().ceil() as u64).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn volumes_in_memory_are_mounted_with_their_limits() {
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [], "volumes": [
            {"name": "disk", "emptyDir": {}},
            {"name": "a", "emptyDir": {"medium": "Memory"}},
            {"name": "b", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "c", "emptyDir": {"medium": "Memory", "sizeLimit": "0"}},
        ]}}))
        .unwrap();
        let tmpfs = |name: &str, size| Operation::Tmpfs {
            at: Path::new("/v").join(name),
            mode: 0o2777,
            group: Some(5),
            size,
        };
        let expected = [
            Operation::Private,
            tmpfs("a", None),
            tmpfs("b", Some(1 << 20)),
            tmpfs("c", None),
        ];
        let command = holder(&pod, Path::new("/v"), Some(5)).unwrap();
        assert_eq!(command.operations, expected);
        let none: Pod = serde_json::from_value(json!({"spec": {"containers": []}})).unwrap();
        assert!(holder(&none, Path::new("/v"), None).is_none());
    }
}
