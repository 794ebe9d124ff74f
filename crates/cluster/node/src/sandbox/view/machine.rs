//! The access to the machine's files for planning a view.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

/// The type of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A directory.
    Folder,
    /// Anything else.
    File,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A directory.
    Folder,
    /// A file, socket or device.
    File,
    /// A symbolic link, with its target.
    Link(PathBuf),
}

/// The machine's files that are needed to plan a view.
pub(crate) trait Machine {
    /// Returns the type of the file at `path`, following links, or `None` if it does not exist.
    fn find(&self, path: &Path) -> Option<FileKind>;
    /// Returns an existing path with its links resolved.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns the entries of a directory.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>>;
    /// Returns the permission bits of a directory.
    fn mode(&self, folder: &Path) -> u32;
}

/// The machine this process runs on.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn find(&self, path: &Path) -> Option<FileKind> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(if metadata.is_dir() {
            FileKind::Folder
        } else {
            FileKind::File
        })
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let what = if kind.is_symlink() {
                Entry::Link(std::fs::read_link(entry.path())?)
            } else if kind.is_dir() {
                Entry::Folder
            } else {
                Entry::File
            };
            entries.push((entry.file_name(), what));
        }
        Ok(entries)
    }

    fn mode(&self, folder: &Path) -> u32 {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(folder).map_or(0o755, |metadata| metadata.mode() & 0o7777)
    }
}
