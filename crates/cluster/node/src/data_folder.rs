//! The folder of the agent's files.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::fs::IFlags;

use crate::remover::Remover;

/// The folders of the logs of pods, and of their other files, by UID.
pub(crate) const LOGS: &str = "logs";
pub(crate) const PODS: &str = "pods";
/// An empty folder, where each container mounts its new root in its own mount namespace.
pub(crate) const MOUNT_BASE: &str = "base";
/// The folder for testing the permissions of the kernel.
pub(crate) const PROBE: &str = "probe";

/// The names of the nodes of the agent, one per line.
const NODES: &str = "nodes";

/// Returns the names of the nodes of earlier agents on the folder, without the nodes that were
/// removed.
pub(crate) fn earlier_nodes(data: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(data.join(NODES)) {
        Ok(names) => Ok(names.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Records the names of nodes before they are registered, or after others were removed. Writes
/// nothing if the names are recorded already, so that a start then needs no disk space.
pub(crate) fn record_nodes<'a>(
    data: &Path,
    names: impl IntoIterator<Item = &'a String>,
) -> io::Result<()> {
    let mut text = String::new();
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    if fs::read_to_string(data.join(NODES)).is_ok_and(|known| known == text) {
        return Ok(());
    }
    let new = data.join(format!("{NODES}.new"));
    fs::write(&new, text)?;
    fs::rename(new, data.join(NODES))
}

/// Creates the missing folders. Returns the canonical path.
pub(crate) fn create(data: &Path) -> io::Result<PathBuf> {
    // The folder contains secrets of pods, so no other user may read it.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)?;
    let data = data.canonicalize()?;
    for name in [LOGS, PODS, MOUNT_BASE, PROBE] {
        fs::create_dir_all(data.join(name))?;
    }
    for name in [LOGS, PODS] {
        // Only ext2, ext3 and ext4 have the attribute.
        let _ = spread_folders(&data.join(name));
    }
    Ok(data)
}

/// Marks the folder as the top of hierarchies, like `chattr +T`. ext4 then places its subfolders in
/// different groups of blocks. Otherwise they share the inodes of this folder's group. ext4 skips
/// an inode for minutes after its deletion, so after many short pods, the search for a free inode
/// would pass the inodes of all recent pods.
fn spread_folders(folder: &Path) -> io::Result<()> {
    let folder = fs::File::open(folder)?;
    let flags = rustix::fs::ioctl_getflags(&folder)?;
    rustix::fs::ioctl_setflags(&folder, flags | IFlags::TOPDIR)?;
    Ok(())
}

/// Queues the removal of the files of pods that were deleted while no agent ran. The start does not
/// wait for it.
pub(crate) fn remove_stale_pods(data: &Path, present: &HashSet<String>, remover: &Remover) {
    for entry in fs::read_dir(data.join(PODS))
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry
            .file_name()
            .to_str()
            .is_none_or(|uid| !present.contains(uid))
        {
            remover.remove(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stderr)]
    use super::*;

    #[test]
    fn ext4_places_the_folders_of_pods_in_different_groups() {
        let folder = tempfile::tempdir().unwrap();
        let data = create(&folder.path().join("node")).unwrap();
        // The magic number of ext2, ext3 and ext4.
        if rustix::fs::statfs(&data).unwrap().f_type != 0xEF53 {
            return eprintln!("skipped: {} is not on ext4", data.display());
        }
        for name in [LOGS, PODS] {
            let folder = fs::File::open(data.join(name)).unwrap();
            let flags = rustix::fs::ioctl_getflags(&folder).unwrap();
            assert!(flags.contains(IFlags::TOPDIR), "{name}");
        }
    }
}
