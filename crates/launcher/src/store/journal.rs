//! Remembers how far an upload has come, so that the next process can go on with
//! it: one file for each bundle and store, a line for what was begun and one for
//! each part that has arrived.
//!
//! There are no credentials in it: who has an upload's id can do nothing with it
//! alone. Files and folders that other users own or may write to are not used.
//! Nothing in a journal is trusted: a file that is not as it should be is none. A
//! line is one write, so a killed process leaves whole lines, or a last one that
//! does not end and does not count.

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

/// Counts up when the lines mean something else.
const FORMAT: u32 = 1;
/// More than any upload's journal has: a line for each of 9,000 parts.
const LIMIT: u64 = 4 * 1024 * 1024;
/// How long an upload is gone on with. Azure forgets parts after a week, and so do
/// the rules that people give to buckets.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The end of the names of the files.
const EXTENSION: &str = "journal";

/// The first line: what was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    format: u32,
    /// The store, as a hash of what makes it another one.
    store: String,
    object: String,
    upload: String,
    part_size: u64,
    total: u64,
}

/// Every other line: a part that has arrived.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrived {
    part: usize,
    id: String,
}

/// An upload that was begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// The object's path in the bucket.
    pub(super) object: String,
    /// What the store calls the upload.
    pub(super) upload: String,
    /// The size of its parts, but for the last.
    pub(super) part_size: u64,
    /// The size of the whole.
    pub(super) total: u64,
    /// What the store calls the parts that have arrived.
    pub(super) parts: BTreeMap<usize, String>,
}

/// The journals of uploads to one store.
#[derive(Debug)]
pub(super) struct Journals {
    folder: PathBuf,
    store: String,
}

impl Journals {
    /// In this folder. `store`: what tells it from all others.
    pub(super) fn new(folder: PathBuf, store: &str) -> Self {
        Self {
            folder,
            store: hash(&[store]),
        }
    }

    /// The journal of an object, which is this process's until it is dropped.
    /// `None` when another process has it, or nothing can be kept here: then an
    /// upload is as good as without.
    pub(super) fn open(&self, object: &str) -> Option<Journal> {
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

    /// Removes the journals that nobody has gone on with for a week, whatever
    /// their store; those of this one are what may be taken back there.
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
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    store: String,
    object: String,
    is_begun: bool,
    is_broken: bool,
}

impl Journal {
    /// What an earlier process began. A part that is written down now comes after
    /// what is found.
    pub(super) fn found(&mut self) -> Option<Unfinished> {
        let (begun, unfinished, length) = read(&mut self.file)?;
        let is_ours = begun.store == self.store && begun.object == self.object;
        // What comes after the last whole line shall not be the next one's begin.
        self.is_begun = is_ours && self.file.set_len(length).is_ok();
        self.is_begun.then_some(unfinished)
    }

    /// An upload begins; what was found is forgotten.
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

    /// A part has arrived.
    pub(super) fn arrived(&mut self, part: usize, id: &str) {
        self.line(&Arrived {
            part,
            id: id.to_owned(),
        });
    }

    /// Whether another process can go on with it.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// There is nothing to go on with.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }

    /// Nothing depends on a line that cannot be written; but none may come after
    /// a half of one.
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

/// Opens a journal for this process alone; `None` when another has it.
fn open(path: &Path) -> io::Result<Option<File>> {
    let file = longshore_files::open(path, longshore_files::OpenMode::Append);
    let file = file.map_err(io::Error::other)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// What a file says, and the length of it that says so.
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
#[path = "journal_tests.rs"]
mod tests;
