//! Records the progress of an upload, so that the next process can resume it: one file per
//! bundle and store, with a line for the upload and one for each uploaded part.
//!
//! A journal contains no credentials: an upload ID is useless without them. Files and folders
//! that other users own or can write to are not used. Invalid journals are ignored. Each line
//! is one write, so a killed process leaves complete lines, or an incomplete last line, which
//! is ignored.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bundle::hexadecimal;

/// The format version. Incremented on every change.
const FORMAT: u32 = 1;
/// More than the size of any journal, which has a line for each of up to 9,000 parts.
const LIMIT: u64 = 4 * 1024 * 1024;
/// The time for which an upload can be resumed. Azure removes parts after a week, as do common
/// lifecycle rules of buckets.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The extension of the files.
const EXTENSION: &str = "journal";

/// The first line, which describes the upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    format: u32,
    /// A hash that identifies the store.
    store: String,
    object: String,
    upload: String,
    part_size: u64,
    total: u64,
}

/// Any other line: an uploaded part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrived {
    part: usize,
    id: String,
}

/// An unfinished upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// The object's path in the bucket.
    pub(super) object: String,
    /// The upload ID.
    pub(super) upload: String,
    /// The size of the parts, except the last.
    pub(super) part_size: u64,
    /// The total size in bytes.
    pub(super) total: u64,
    /// The IDs of the uploaded parts.
    pub(super) parts: BTreeMap<usize, String>,
}

/// The journals of uploads to one store.
#[derive(Debug)]
pub(crate) struct Journals {
    folder: PathBuf,
    store: String,
}

impl Journals {
    /// The journals in this folder. `store` identifies the store.
    pub(crate) fn new(folder: PathBuf, store: &str) -> Self {
        Self {
            folder,
            store: hash(&[store]),
        }
    }

    /// Opens the journal of an object for this process alone. `None` if another process uses it, or
    /// if it cannot be written, so that the upload cannot be resumed.
    pub(crate) fn open(&self, object: &str) -> Option<Journal> {
        let path = self.path(object);
        let made = longshore_files::private_dir(&self.folder).map_err(io::Error::other);
        let made = made.and_then(|_| open(&path));
        match made {
            Ok(file) => Some(Journal {
                file: file?,
                path,
                store: self.store.clone(),
                object: object.to_owned(),
                is_begun: false,
                is_broken: false,
            }),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "the upload is not remembered");
                None
            }
        }
    }

    /// The journal of an object, if there is one.
    pub(super) fn find(&self, object: &str) -> Option<Journal> {
        self.path(object)
            .exists()
            .then(|| self.open(object))
            .flatten()
    }

    fn path(&self, object: &str) -> PathBuf {
        let name = hash(&[&self.store, object]);
        self.folder.join(name).with_extension(EXTENSION)
    }

    /// Removes the journals of all stores that were not resumed for a week. Returns the uploads
    /// of this store, which can be aborted.
    pub(super) fn remove_outdated(&self, now: SystemTime) -> Vec<Unfinished> {
        if !self.folder.exists() || longshore_files::private_dir(&self.folder).is_err() {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let is_old = |path: &Path| {
            let changed = path.symlink_metadata().and_then(|found| found.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age > KEPT))
        };
        let paths = entries.flatten().map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|end| end == EXTENSION) && is_old(path))
            .filter_map(|path| {
                let mut file = open(&path).ok()??;
                let begun = read(&mut file).map(|(begun, unfinished, _)| (begun.store, unfinished));
                let _ = fs::remove_file(&path);
                begun
            })
            .filter(|(store, _)| *store == self.store)
            .map(|(_, unfinished)| unfinished)
            .collect()
    }
}

/// The journal of one upload.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    store: String,
    object: String,
    is_begun: bool,
    is_broken: bool,
}

impl Journal {
    /// The upload of an earlier process. New parts are appended to its journal.
    pub(super) fn found(&mut self) -> Option<Unfinished> {
        let (begun, unfinished, length) = read(&mut self.file)?;
        let is_ours = begun.store == self.store && begun.object == self.object;
        // Remove an incomplete last line.
        self.is_begun = is_ours && self.file.set_len(length).is_ok();
        self.is_begun.then_some(unfinished)
    }

    /// Starts a new upload and discards the earlier one.
    pub(super) fn begin(&mut self, upload: &str, part_size: u64, total: u64) {
        self.is_broken = self.file.set_len(0).is_err();
        self.line(&Begun {
            format: FORMAT,
            store: self.store.clone(),
            object: self.object.clone(),
            upload: upload.to_owned(),
            part_size,
            total,
        });
        self.is_begun = !self.is_broken;
    }

    /// Records an uploaded part.
    pub(super) fn arrived(&mut self, part: usize, id: &str) {
        self.line(&Arrived {
            part,
            id: id.to_owned(),
        });
    }

    /// Returns true if another process can resume the upload.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Removes the journal of a finished or aborted upload.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Appends a line. Write errors are only logged, but no line may follow an incomplete one.
    fn line(&mut self, line: &impl Serialize) {
        if self.is_broken {
            return;
        }
        let written = serde_json::to_vec(line)
            .map_err(io::Error::from)
            .and_then(|mut text| {
                text.push(b'\n');
                self.file.write_all(&text)
            });
        if let Err(error) = written {
            tracing::debug!(%error, path = %self.path.display(), "the upload is not remembered");
            self.is_broken = true;
        }
    }
}

/// Opens a journal for this process alone. `None` if another process uses it.
fn open(path: &Path) -> io::Result<Option<File>> {
    let file = longshore_files::open(path, longshore_files::OpenMode::Append);
    let file = file.map_err(io::Error::other)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Parses a file. Returns the content and the length of its complete lines.
fn read(file: &mut File) -> Option<(Begun, Unfinished, u64)> {
    let mut text = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut text).ok()?;
    let end = text.iter().rposition(|byte| *byte == b'\n')?;
    let mut lines = text[..end].split(|byte| *byte == b'\n');
    let begun: Begun = serde_json::from_slice(lines.next()?).ok()?;
    let parts: Result<BTreeMap<_, _>, _> = lines
        .map(|line| {
            serde_json::from_slice::<Arrived>(line).map(|arrived| (arrived.part, arrived.id))
        })
        .collect();
    let unfinished = Unfinished {
        object: begun.object.clone(),
        upload: begun.upload.clone(),
        part_size: begun.part_size,
        total: begun.total,
        parts: parts.ok()?,
    };
    let length = end as u64 + 1;
    (begun.format == FORMAT && text.len() as u64 <= LIMIT).then_some((begun, unfinished, length))
}

fn hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hexadecimal(&hash.finalize())[..32].to_owned()
}

#[cfg(test)]
mod tests;
