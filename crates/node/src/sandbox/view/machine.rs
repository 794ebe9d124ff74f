//! The machine's files, as far as the planning of a view asks.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A folder.
    Folder,
    /// Anything else.
    File,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A folder.
    Folder,
    /// A file, socket or device.
    File,
    /// A symbolic link and where it points.
    Link(PathBuf),
}

/// The machine's files, as far as planning asks.
pub(crate) trait Machine {
    /// What stands at `path`, links followed; `None` when nothing does.
    fn find(&self, path: &Path) -> Option<Found>;
    /// The path without links, of a path that exists.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// What is in a folder.
    fn entries(&self, folder: &Path) -> io::Result<Vec<(OsString, Entry)>>;
    /// Permission bits of a folder.
    fn mode(&self, folder: &Path) -> u32;
}

/// The machine this runs on.
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn find(&self, path: &Path) -> Option<Found> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(if metadata.is_dir() {
            Found::Folder
        } else {
            Found::File
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
