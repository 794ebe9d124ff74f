//! Differences between two states of a folder, and the archive of the changed files.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    Bundle, BundleError, PackOptions,
    archive::archive,
    entry::{Found, Kind, Stamp},
    scan::check,
    sink::Data,
    walk,
};

/// The files, folders and links of a folder that packing includes, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
}

/// Properties that distinguish two states of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) executable: bool,
    pub(super) stamp: Stamp,
}

/// The difference between two manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// New and changed entries, sorted: a folder precedes its contents.
    pub changed: Vec<PathBuf>,
    /// Removed entries, in reverse order: the contents of a folder precede it.
    pub removed: Vec<PathBuf>,
    /// The new and changed entries that are files or links.
    pub files: Vec<PathBuf>,
    /// The size of these files in bytes.
    pub bytes: u64,
}

/// The archive of changed files, a gzip-compressed tar archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeArchive {
    /// The archive.
    pub bytes: Vec<u8>,
    /// The sha256 of the archive, in hexadecimal.
    pub sha256: String,
}

impl Changes {
    /// Returns true if both states are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

impl Manifest {
    fn new(found: &[Found]) -> Self {
        let entries = found.iter().map(|found| {
            let entry = Entry {
                kind: found.kind,
                size: found.size,
                executable: found.executable,
                stamp: found.stamp,
            };
            (found.path.clone(), entry)
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// The current state of a folder.
    ///
    /// # Errors
    /// A folder or an ignore file cannot be read.
    pub fn of_folder(folder: &Path, options: &PackOptions) -> Result<Self, BundleError> {
        Ok(Self::new(&walk::walk(folder, options)?.entries))
    }

    /// The paths of the folders.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        let folders = self.entries.iter();
        let folders = folders.filter(|(_, entry)| entry.kind == Kind::Folder);
        folders.map(|(path, _)| path.as_path())
    }

    /// The paths and sizes of the files, sorted.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, u64)> {
        let files = self.entries.iter();
        let files = files.filter(|(_, entry)| entry.kind == Kind::File);
        files.map(|(path, entry)| (path.as_path(), entry.size))
    }

    /// The files whose times changed since an older state, if nothing else changed.
    pub(super) fn only_written_since(&self, older: &Self) -> Option<Vec<&Path>> {
        if !self.entries.keys().eq(older.entries.keys()) {
            return None;
        }
        let mut written = Vec::new();
        for ((path, now), before) in self.entries.iter().zip(older.entries.values()) {
            if now == before {
                continue;
            }
            let at_that_time = Entry {
                stamp: before.stamp,
                ..*now
            };
            if at_that_time != *before || now.kind != Kind::File {
                return None;
            }
            written.push(path.as_path());
        }
        Some(written)
    }

    /// The same state without these files.
    #[must_use]
    pub fn without(&self, files: &BTreeSet<PathBuf>) -> Self {
        let mut entries = self.entries.clone();
        entries.retain(|path, _| !files.contains(path));
        Self { entries }
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(PathBuf::as_path)
    }

    /// The changes between an older state and this one. Pure. An entry whose kind has changed is
    /// both removed and new.
    #[must_use]
    pub fn changes_since(&self, older: &Self) -> Changes {
        let mut changes = Changes::default();
        for (path, entry) in &self.entries {
            let before = older.entries.get(path);
            if before == Some(entry) {
                continue;
            }
            if before.is_some_and(|before| before.kind != entry.kind) {
                changes.removed.push(path.clone());
            }
            if entry.kind != Kind::Folder {
                changes.files.push(path.clone());
                changes.bytes = changes.bytes.saturating_add(entry.size);
            }
            changes.changed.push(path.clone());
        }
        let gone = older.entries.keys();
        let gone = gone.filter(|path| !self.entries.contains_key(*path));
        changes.removed.extend(gone.cloned());
        changes.removed.sort_by(|a, b| b.cmp(a));
        changes
    }

    /// The largest of these files, largest first.
    #[must_use]
    pub fn largest(&self, paths: &[PathBuf], most: usize) -> Vec<(PathBuf, u64)> {
        let sizes = paths.iter().filter_map(|path| {
            let entry = self.entries.get(path)?;
            Some((path.clone(), entry.size))
        });
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sizes.truncate(most);
        sizes
    }

    /// Packs the changed entries of a folder, with the checks of [`pack`](super::pack()).
    ///
    /// # Errors
    /// The same as [`pack`](super::pack()). If a file changes meanwhile, [`BundleError::Changed`]
    /// or [`BundleError::Read`].
    pub fn pack(
        &self,
        folder: &Path,
        changed: &[PathBuf],
        options: &PackOptions,
    ) -> Result<ChangeArchive, BundleError> {
        let entries = changed.iter().filter_map(|path| {
            let entry = self.entries.get(path)?;
            Some(Found {
                path: path.clone(),
                kind: entry.kind,
                size: entry.size,
                executable: entry.executable,
                stamp: entry.stamp,
            })
        });
        let entries: Vec<Found> = entries.collect();
        check(folder, &entries, options)?;
        let stop = AtomicBool::new(false);
        let (data, _, sha256) = archive(folder, &entries, &stop, |_| {})?;
        let bytes = match data {
            Data::Memory(bytes) => bytes.to_vec(),
            Data::File(file) => {
                let mut bytes = Vec::new();
                let opened = std::fs::File::open(file.path());
                let read = opened.and_then(|mut file| file.read_to_end(&mut bytes));
                read.map_err(|error: io::Error| BundleError::Write(error))?;
                bytes
            }
        };
        Ok(ChangeArchive { bytes, sha256 })
    }
}

impl Bundle {
    /// The packed state of the folder.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        Manifest::new(&self.contents.entries)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn changes_are_found_and_packed_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let options = PackOptions::default();
        let state = || Manifest::of_folder(folder.path(), &options).unwrap();
        fs::create_dir(at("old")).unwrap();
        for path in ["same.py", "changed.py", "old/gone.py", "kind"] {
            fs::write(at(path), "x = 1\n").unwrap();
        }
        let before = state();
        assert!(state().changes_since(&before).is_empty());
        fs::write(at("changed.py"), "x = 22\n").unwrap();
        fs::remove_dir_all(at("old")).unwrap();
        fs::remove_file(at("kind")).unwrap();
        fs::create_dir(at("kind")).unwrap();
        fs::write(at("kind/new.py"), "x = 3\n").unwrap();
        fs::write(at("ignored.pyc"), "x").unwrap();
        let after = state();
        let changes = after.changes_since(&before);
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            changes.changed,
            paths(&["changed.py", "kind", "kind/new.py"])
        );
        assert_eq!(changes.files, paths(&["changed.py", "kind/new.py"]));
        assert_eq!(changes.removed, paths(&["old/gone.py", "old", "kind"]));
        assert_eq!(changes.bytes, 13);
        let archive = after
            .pack(folder.path(), &changes.changed, &options)
            .unwrap();
        let target = tempfile::tempdir().unwrap();
        let reader = flate2::read::MultiGzDecoder::new(&archive.bytes[..]);
        let unpacked = longshore_archive::unpack(
            reader,
            target.path(),
            &longshore_archive::Unpack::default(),
            |_| (),
        );
        assert_eq!(unpacked.unwrap().files, 2);
        let content = fs::read_to_string(target.path().join("changed.py")).unwrap();
        assert_eq!(content, "x = 22\n");
        // A file that looks like a secret is refused, as in packing.
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
        fs::write(at("id_ed25519"), key).unwrap();
        let with_key = state();
        let changes = with_key.changes_since(&after);
        let refused = with_key.pack(folder.path(), &changes.changed, &options);
        assert!(
            matches!(refused, Err(BundleError::Secrets(_))),
            "{refused:?}"
        );
    }
}
