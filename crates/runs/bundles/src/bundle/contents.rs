//! The contents of a folder's files, to recognize files that were rewritten without a change.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{Changes, Manifest};

/// Larger files are not read: a change of their times counts as a change of their content.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The maximum size of all files that are read.
const MAX_BYTES: u64 = 64 << 20;

type Hash = [u8; 32];

/// Hashes of the contents of files.
#[derive(Debug, Clone, Default)]
pub struct FileContents {
    hashes: BTreeMap<PathBuf, Hash>,
}

impl FileContents {
    /// Reads the small files of a folder. Files that cannot be read are left out. The result
    /// corresponds to the manifest only if the folder is still in the manifest's state afterwards.
    #[must_use]
    pub fn of(folder: &Path, manifest: &Manifest) -> Self {
        let mut left = MAX_BYTES;
        let files = manifest.files().filter(|(_, size)| {
            let fits = *size <= MAX_FILE_BYTES && *size <= left;
            left -= if fits { *size } else { 0 };
            fits
        });
        Self::read(folder, files.map(|(path, _)| path))
    }

    /// Returns true if only times of known files differ between two states, and the files have the
    /// known contents.
    #[must_use]
    pub fn are_unchanged(&self, folder: &Path, before: &Manifest, now: &Manifest) -> bool {
        let Some(written) = now.only_written_since(before) else {
            return false;
        };
        let is_known = written.iter().all(|path| self.hashes.contains_key(*path));
        is_known && {
            let read = Self::read(folder, written.iter().copied());
            written
                .iter()
                .all(|path| read.hashes.get(*path) == self.hashes.get(*path))
        }
    }

    /// Reads the small files of a change. The result corresponds to the manifest only if the files
    /// are still in the manifest's state afterwards.
    #[must_use]
    pub fn of_changes(folder: &Path, manifest: &Manifest, changes: &Changes) -> Self {
        let small = manifest.files().filter(|(path, size)| {
            let changed = || {
                changes
                    .files
                    .binary_search_by(|file| file.as_path().cmp(path))
            };
            *size <= MAX_FILE_BYTES && changed().is_ok()
        });
        Self::read(folder, small.map(|(path, _)| path))
    }

    /// Applies a change and the contents of its files.
    pub fn update(&mut self, changes: &Changes, changed: Self) {
        for path in changes.removed.iter().chain(&changes.changed) {
            self.hashes.remove(path);
        }
        self.hashes.extend(changed.hashes);
    }

    fn read<'a>(folder: &Path, paths: impl Iterator<Item = &'a Path>) -> Self {
        let hash = |path: &Path| {
            let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            let file = OpenOptions::new()
                .read(true)
                .custom_flags(flags.bits().cast_signed())
                .open(folder.join(path))?;
            let mut hash = Sha256::new();
            io::copy(&mut io::Read::take(file, MAX_FILE_BYTES + 1), &mut hash)?;
            Ok::<Hash, io::Error>(hash.finalize().into())
        };
        let hashes = paths.filter_map(|path| Some((path.to_owned(), hash(path).ok()?)));
        Self {
            hashes: hashes.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::bundle::PackOptions;

    #[test]
    fn files_that_are_written_without_a_change_are_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let manifest = || Manifest::of_folder(folder, &PackOptions::default()).unwrap();
        fs::write(folder.join("a.py"), "one").unwrap();
        fs::write(folder.join("b.py"), "two").unwrap();
        let first = manifest();
        let mut contents = FileContents::of(folder, &first);

        // Writes in place, and by renaming, as editors do.
        fs::write(folder.join("a.py"), "one").unwrap();
        fs::write(folder.join("new"), "two").unwrap();
        fs::rename(folder.join("new"), folder.join("b.py")).unwrap();
        let second = manifest();
        assert_ne!(first, second);
        assert!(contents.are_unchanged(folder, &first, &second));

        fs::write(folder.join("a.py"), "ONE").unwrap();
        let third = manifest();
        assert!(!contents.are_unchanged(folder, &second, &third));
        let changes = third.changes_since(&second);
        contents.update(&changes, FileContents::of_changes(folder, &third, &changes));
        fs::write(folder.join("a.py"), "ONE").unwrap();
        let fourth = manifest();
        assert!(contents.are_unchanged(folder, &third, &fourth));

        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.join("a.py"), executable).unwrap();
        let fifth = manifest();
        assert!(!contents.are_unchanged(folder, &fourth, &fifth));
        fs::write(folder.join("c.py"), "").unwrap();
        let sixth = manifest();
        assert!(!contents.are_unchanged(folder, &fifth, &sixth));
        fs::remove_file(folder.join("c.py")).unwrap();
        assert!(!contents.are_unchanged(folder, &sixth, &manifest()));
    }
}
