//! Finds the entries of a data folder.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use longshore_archive::is_confined;
use serde::{Deserialize, Serialize};

use super::{
    DataError,
    check::{DEEPEST, is_plain, is_plain_name},
    manifest::{DataLink, MOST_FILES},
};

/// The ignore file of a data folder.
const IGNORE_FILE: &str = ".longshoreignore";

/// The entries of a folder.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<FoundFile>,
    pub(super) folders: Vec<String>,
    pub(super) links: Vec<DataLink>,
    /// The number of entries that the ignore file excludes.
    pub(super) excluded: u64,
}

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) path: String,
    pub(super) stamp: Stamp,
    pub(super) executable: bool,
}

/// Properties of a file that change when the file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) size: u64,
    pub(super) inode: u64,
    /// The times of the last change of the content, and of any change, in nanoseconds.
    pub(super) modified: i128,
    pub(super) changed: i128,
}

impl Stamp {
    pub(super) fn of(found: &fs::Metadata) -> Self {
        let time = |seconds: i64, nanoseconds: i64| {
            i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
        };
        Self {
            size: found.len(),
            inode: found.ino(),
            modified: time(found.mtime(), found.mtime_nsec()),
            changed: time(found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Finds the entries, sorted by path.
pub(super) fn walk(folder: &Path, stop: &AtomicBool) -> Result<Walked, DataError> {
    let mut walk = Walk {
        root: folder,
        rules: rules(folder)?,
        stop,
        walked: Walked::default(),
    };
    walk.folder(folder, "", 1)?;
    Ok(walk.walked)
}

fn rules(folder: &Path) -> Result<Gitignore, DataError> {
    let path = folder.join(IGNORE_FILE);
    let invalid = |problem: String| DataError::Ignore {
        path: path.clone(),
        problem,
    };
    let mut rules = GitignoreBuilder::new(folder);
    if fs::symlink_metadata(&path).is_ok()
        && let Some(error) = rules.add(&path)
    {
        return Err(invalid(error.to_string()));
    }
    rules.build().map_err(|error| invalid(error.to_string()))
}

struct Walk<'a> {
    root: &'a Path,
    rules: Gitignore,
    stop: &'a AtomicBool,
    walked: Walked,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, path: &str, depth: usize) -> Result<(), DataError> {
        let read = |source| DataError::Read {
            path: folder.to_owned(),
            source,
        };
        let entries = fs::read_dir(folder).map_err(read)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(read)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let is_empty = entries.is_empty();
        for entry in entries {
            if self.stop.load(Ordering::Relaxed) {
                return Err(DataError::Stopped);
            }
            self.entry(&entry.path(), path, depth)?;
        }
        if is_empty && !path.is_empty() {
            self.walked.folders.push(path.to_owned());
        }
        Ok(())
    }

    fn entry(&mut self, full: &Path, above: &str, depth: usize) -> Result<(), DataError> {
        let relative = full.strip_prefix(self.root).unwrap_or(full);
        let refuse = |problem: &str| DataError::Entry {
            path: relative.to_owned(),
            problem: problem.to_owned(),
        };
        let found = match fs::symlink_metadata(full) {
            // The entry was removed after its folder was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(DataError::Changed {
                    path: full.to_owned(),
                });
            }
            found => found.map_err(|source| DataError::Read {
                path: full.to_owned(),
                source,
            })?,
        };
        if self.rules.matched(full, found.is_dir()).is_ignore() {
            self.walked.excluded = self.walked.excluded.saturating_add(1);
            return Ok(());
        }
        let name = full.file_name().unwrap_or_default().to_str();
        let Some(name) = name.filter(|name| is_plain_name(name)) else {
            return Err(refuse(
                "its name is not UTF-8, has control characters, or is too long",
            ));
        };
        let path = match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        if !is_plain(&path) || depth > DEEPEST {
            return Err(refuse("its path is too long, or has too many folders"));
        }
        let walked = &self.walked;
        let count = walked.files.len() + walked.folders.len() + walked.links.len();
        if count >= MOST_FILES {
            return Err(DataError::TooMany {
                place: self.root.display().to_string(),
                what: "entries",
                most: MOST_FILES,
            });
        }
        if found.is_dir() {
            return self.folder(full, &path, depth + 1);
        }
        if found.is_symlink() {
            let target = fs::read_link(full).map_err(|source| DataError::Read {
                path: full.to_owned(),
                source,
            })?;
            if !is_confined(relative, &target) {
                return Err(refuse(
                    "it is a symbolic link that leaves the data folder; replace it with a copy",
                ));
            }
            let target = target.into_os_string().into_string();
            let target = target.map_err(|_| refuse("the target of the link is not UTF-8"))?;
            self.walked.links.push(DataLink { path, target });
            return Ok(());
        }
        if !found.is_file() {
            return Err(refuse("it is a pipe, a socket or a device"));
        }
        self.walked.files.push(FoundFile {
            path,
            stamp: Stamp::of(&found),
            executable: found.mode() & 0o100 != 0,
        });
        Ok(())
    }
}

/// The path of a folder without symbolic links.
pub(super) fn canonical(folder: &Path) -> Result<PathBuf, DataError> {
    let refuse = |problem: String| DataError::NoFolder {
        path: folder.to_owned(),
        problem,
    };
    match folder.canonicalize() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(refuse("does not exist".to_owned()))
        }
        Err(error) => Err(refuse(format!("cannot be opened: {error}"))),
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(refuse(
            "is a file, not a folder; give the folder it is in".to_owned(),
        )),
    }
}
