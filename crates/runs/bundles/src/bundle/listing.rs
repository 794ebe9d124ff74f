//! The contents of a folder of code, independent of this machine's times, to compare it with a
//! folder of another machine.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    Manifest,
    changes::Entry,
    entry::{Kind, Stamp},
    hexadecimal,
};

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Content {
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// The target of the link.
        target: String,
    },
    /// A file.
    File {
        /// The size of the file in bytes.
        size: u64,
        /// True if the owner may execute the file.
        executable: bool,
        /// The sha256 of its content, in hexadecimal.
        sha256: String,
    },
    /// The entry exists, but its content is not known.
    Unknown,
}

/// The entries of a folder by their paths. Paths that are not UTF-8 are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Listing {
    entries: BTreeMap<String, Content>,
}

impl Listing {
    /// Reads all entries of a folder. An entry that cannot be read is [`Content::Unknown`].
    #[must_use]
    pub fn of_folder(folder: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(inside) = folders.pop() {
            let Ok(found) = fs::read_dir(folder.join(&inside)) else {
                continue;
            };
            for entry in found.flatten() {
                let path = inside.join(entry.file_name());
                let Some(text) = path.to_str() else { continue };
                let content = Content::of(&entry.path()).unwrap_or(Content::Unknown);
                entries.insert(text.to_owned(), content.clone());
                if content == Content::Folder {
                    folders.push(path);
                }
            }
        }
        Self { entries }
    }

    /// Adds the entries of another folder, which replace entries with the same paths.
    pub fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    /// Removes an entry.
    pub fn remove(&mut self, path: &str) {
        self.entries.remove(path);
    }

    /// Records that entries may have been replaced by the entries of another folder.
    pub fn forget(&mut self, other: &Self) {
        let paths = other.entries.keys().cloned();
        self.entries
            .extend(paths.map(|path| (path, Content::Unknown)));
    }

    /// The paths of the entries, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.entries.keys().map(Path::new)
    }
}

impl Content {
    /// Reads an entry.
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.symlink_metadata()?;
        if metadata.is_dir() {
            return Ok(Self::Folder);
        }
        if metadata.is_symlink() {
            let target = fs::read_link(path)?.into_os_string().into_string();
            return Ok(target.map_or(Self::Unknown, |target| Self::Link { target }));
        }
        if !metadata.is_file() {
            return Ok(Self::Unknown);
        }
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let mut hash = Sha256::new();
        let size = io::copy(&mut file, &mut hash)?;
        Ok(Self::File {
            size,
            executable: metadata.permissions().mode() & 0o100 != 0,
            sha256: hexadecimal(&hash.finalize()),
        })
    }

    /// Returns true if an entry of a folder of this machine, which is at `path`, has this content.
    fn is_of(&self, entry: &Entry, path: &Path) -> bool {
        let may_be_same = match self {
            Self::Folder => entry.kind == Kind::Folder,
            Self::Link { .. } => entry.kind == Kind::Link,
            Self::File {
                size, executable, ..
            } => {
                let same = (entry.size, entry.executable) == (*size, *executable);
                entry.kind == Kind::File && same
            }
            Self::Unknown => false,
        };
        may_be_same && Self::of(path).is_ok_and(|found| found == *self)
    }

    /// An entry that differs from every entry of this machine, except for folders.
    fn elsewhere(&self) -> Entry {
        let (kind, size, executable) = match self {
            Self::Folder => (Kind::Folder, 0, true),
            Self::Link { .. } => (Kind::Link, 0, false),
            Self::File {
                size, executable, ..
            } => (Kind::File, *size, *executable),
            Self::Unknown => (Kind::File, 0, false),
        };
        Entry {
            kind,
            size,
            executable,
            stamp: Stamp::default(),
        }
    }
}

impl Manifest {
    /// Translates the state of a folder of another machine into this state of a folder of this
    /// machine: entries with the same content are equal in both. Reads the files whose sizes are
    /// equal.
    #[must_use]
    pub fn elsewhere(&self, folder: &Path, listing: &Listing) -> Self {
        let entries = listing.entries.iter().map(|(path, content)| {
            let path = PathBuf::from(path);
            let own = self.entries.get(&path);
            let own = own.filter(|own| content.is_of(own, &folder.join(&path)));
            let entry = own.copied().unwrap_or_else(|| content.elsewhere());
            (path, entry)
        });
        Self {
            entries: entries.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::bundle::PackOptions;

    #[test]
    fn folders_of_two_machines_are_compared_by_their_contents() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&here, &there] {
            let at = |path: &str| folder.path().join(path);
            fs::create_dir(at("lib")).unwrap();
            for path in ["same.py", "lib/same.py", "size.py", "mode.sh", "content.py"] {
                fs::write(at(path), "x = 1\n").unwrap();
            }
            symlink("same.py", at("link")).unwrap();
        }
        fs::write(there.path().join("size.py"), "x = 22\n").unwrap();
        fs::write(there.path().join("content.py"), "x = 2\n").unwrap();
        fs::write(there.path().join("removed.py"), "x = 1\n").unwrap();
        fs::write(here.path().join("new.py"), "x = 1\n").unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(here.path().join("mode.sh"), mode).unwrap();

        let listing = Listing::of_folder(there.path());
        let json = serde_json::to_string(&listing).unwrap();
        assert_eq!(serde_json::from_str::<Listing>(&json).unwrap(), listing);
        let manifest = Manifest::of_folder(here.path(), &PackOptions::default()).unwrap();
        let changes = manifest.changes_since(&manifest.elsewhere(here.path(), &listing));
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let changed = paths(&["content.py", "mode.sh", "new.py", "size.py"]);
        assert_eq!(changes.changed, changed);
        assert_eq!(changes.removed, paths(&["removed.py"]));

        // An entry whose content is not known is sent again.
        let mut listing = Listing::of_folder(here.path());
        let state = manifest.elsewhere(here.path(), &listing);
        assert_eq!(state, manifest);
        let mut replaced = Listing::default();
        replaced
            .entries
            .insert("same.py".to_owned(), Content::Folder);
        listing.forget(&replaced);
        listing.remove("new.py");
        let changes = manifest.changes_since(&manifest.elsewhere(here.path(), &listing));
        assert_eq!(changes.changed, paths(&["new.py", "same.py"]));
    }
}
