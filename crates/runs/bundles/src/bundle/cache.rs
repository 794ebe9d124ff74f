//! Caches the result of packing a folder, so that the address of an unchanged folder is
//! known without packing it again.
//!
//! A folder is unchanged if every entry has the same name, kind, size, inode and change
//! times. A file that changes during packing could look unchanged; such a folder is not
//! cached. A folder is cached only after it has passed the checks, so these do not have to
//! read an unchanged folder again.
//!
//! The cache also keeps small archives, because a Secret needs the whole archive.

use std::{
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    entry::totals,
    sink::{Data, hexadecimal},
    walk::Walked,
};

/// Incremented when the same files produce other bytes, or when the checks become stricter.
const FORMAT: &[u8] = b"longshore bundle 4";
/// Coarser than the timestamps of common file systems, in nanoseconds.
const MOMENT: i128 = 2_000_000_000;

/// Folders with fewer files and bytes are not cached: packing them is as fast as a lookup.
const SMALL: (u64, u64) = (500, 4 * 1024 * 1024);
/// Archives up to this size are kept; larger ones are created again on demand.
const KEPT: u64 = 1024 * 1024;
/// Entries that were not used for this long are removed.
const OUTDATED: Duration = Duration::from_secs(60 * 24 * 3600);

/// The result of packing a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The fingerprint of the entries.
    fingerprint: String,
    sha256: String,
    size: u64,
}

/// The cached result for an unchanged folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) sha256: String,
    pub(super) size: u64,
    /// The archive, if it is small.
    pub(super) data: Option<Bytes>,
}

/// The cache entry of one folder.
#[derive(Debug)]
pub(super) struct Cache {
    file: PathBuf,
    fingerprint: String,
    is_small: bool,
    /// The latest change of any entry, in nanoseconds since 1970.
    newest: i128,
}

impl Cache {
    /// Finds the cache entry of a folder. `allowed`: the patterns of files that may be sent
    /// although they look like secrets.
    pub(super) fn of(cache: &Path, folder: &Path, walked: &Walked, allowed: &[String]) -> Self {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = Sha256::digest(whole.as_os_str().as_bytes());
        let newest = walked.entries.iter().map(|entry| entry.changed());
        let (files, bytes) = totals(&walked.entries);
        Self {
            file: cache.join(format!("{}.json", &hexadecimal(&name)[..32])),
            fingerprint: fingerprint(walked, allowed),
            is_small: files <= SMALL.0 && bytes <= SMALL.1,
            newest: newest.max().unwrap_or(0),
        }
    }

    /// The cached result for the current state of the folder.
    ///
    /// Files that another user could have written are ignored: they could assign other code
    /// to the folder.
    pub(super) fn find(&self) -> Option<Known> {
        if !self.file.exists() {
            return None;
        }
        longshore_files::private_dir(self.folder()).ok()?;
        let text = longshore_files::read_optional(&self.file).ok()??;
        let record: Record = serde_json::from_slice(&text).ok()?;
        if record.fingerprint != self.fingerprint {
            return None;
        }
        let data = match record.size <= KEPT {
            true => Some(self.kept(&record)?),
            false => None,
        };
        Some(Known {
            sha256: record.sha256,
            size: record.size,
            data,
        })
    }

    /// The cached archive, if it is intact.
    fn kept(&self, record: &Record) -> Option<Bytes> {
        let archive = self.archive();
        let length = archive.metadata().ok()?.len();
        let data = (length == record.size).then(|| std::fs::read(archive).ok())??;
        (hexadecimal(&Sha256::digest(&data)) == record.sha256).then(|| data.into())
    }

    /// Stores the result. `begun`: when packing began. Write errors are only logged, because
    /// nothing depends on the cache.
    pub(super) fn remember(&self, data: &Data, sha256: &str, size: u64, begun: SystemTime) {
        let since = begun.duration_since(SystemTime::UNIX_EPOCH);
        let begun = since.map_or(0, |since| since.as_nanos().cast_signed());
        if self.is_small || self.newest.saturating_add(MOMENT) > begun {
            return;
        }
        let record = Record {
            fingerprint: self.fingerprint.clone(),
            sha256: sha256.to_owned(),
            size,
        };
        if let Err(error) = self.write(&record, data) {
            tracing::debug!(%error, file = %self.file.display(), "the bundle is not remembered");
        }
    }

    /// Removes the cache entry.
    pub(super) fn forget(&self) {
        for file in [&self.file, &self.archive()] {
            let removed = std::fs::remove_file(file);
            if let Err(error) = removed
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::debug!(%error, file = %file.display(), "cannot remove it from the cache");
            }
        }
    }

    fn archive(&self) -> PathBuf {
        self.file.with_extension("tar.gz")
    }

    fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    fn write(&self, record: &Record, data: &Data) -> io::Result<()> {
        let folder = self.folder();
        longshore_files::private_dir(folder).map_err(io::Error::other)?;
        self.forget();
        if let Err(error) = remove_outdated(folder) {
            tracing::debug!(%error, "cannot tidy the cache of bundles");
        }
        match data {
            Data::Memory(bytes) if record.size <= KEPT => {
                put(folder, &self.archive(), bytes)?;
            }
            Data::Memory(_) | Data::File(_) => {}
        }
        put(folder, &self.file, &serde_json::to_vec(record)?)
    }
}

fn put(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}

/// Removes entries of folders that may no longer exist.
fn remove_outdated(folder: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let modified = entry.metadata().and_then(|found| found.modified());
        let age = modified.map(|modified| now.duration_since(modified).unwrap_or_default());
        if age.is_ok_and(|age| age > OUTDATED) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn fingerprint(walked: &Walked, allowed: &[String]) -> String {
    let mut hash = Sha256::new_with_prefix(FORMAT);
    hash.update((allowed.len() as u64).to_le_bytes());
    for pattern in allowed {
        hash.update((pattern.len() as u64).to_le_bytes());
        hash.update(pattern);
    }
    for entry in &walked.entries {
        let path = entry.path.as_os_str().as_bytes();
        hash.update((path.len() as u64).to_le_bytes());
        hash.update(path);
        hash.update(entry.size.to_le_bytes());
        hash.update([entry.kind as u8, u8::from(entry.executable)]);
        hash.update(entry.stamp.inode.to_le_bytes());
        hash.update(entry.stamp.modified.to_le_bytes());
        hash.update(entry.stamp.changed.to_le_bytes());
    }
    hexadecimal(&hash.finalize())
}
