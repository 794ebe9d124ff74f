//! Entries of a folder to pack.

use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
}

/// The change times of a file, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) inode: u64,
    pub(super) modified: i128,
    pub(super) changed: i128,
}

#[derive(Debug)]
pub(super) struct Found {
    /// Relative to the folder.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) executable: bool,
    pub(super) stamp: Stamp,
}

impl Found {
    /// The latest change time of the entry.
    pub(super) fn changed(&self) -> i128 {
        self.stamp.changed.max(self.stamp.modified)
    }
}

/// The number of files and links, and the total size of the files.
pub(super) fn totals(entries: &[Found]) -> (u64, u64) {
    let files = entries.iter().filter(|entry| entry.kind != Kind::Folder);
    files.fold((0, 0), |(files, bytes): (u64, u64), entry| {
        // Saturating: a sparse file can have any size.
        (files + 1, bytes.saturating_add(entry.size))
    })
}
