//! Remembers what a folder was packed to, so that an unchanged one need not be
//! packed again to know its address.
//!
//! A folder is unchanged when every entry has the same name, kind, size, inode and
//! times of change. A file that was changed in the very moment of packing could
//! look unchanged; such a folder is not remembered.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{sink::hexadecimal, walk::Walked};

/// Counts up when the same files give other bytes.
const FORMAT: &[u8] = b"longshore bundle 2";
/// Coarser than the clocks of the file systems that people have.
const MOMENT: i128 = 2_000_000_000;

/// What a folder was packed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Of the entries.
    fingerprint: String,
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// The memory for one folder.
pub(super) struct Cache {
    file: PathBuf,
    fingerprint: String,
    /// The last time anything in it changed, in nanoseconds since 1970.
    newest: i128,
}

impl Cache {
    pub(super) fn of(cache: &Path, folder: &Path, walked: &Walked) -> Self {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = Sha256::digest(whole.as_os_str().as_bytes());
        let newest = walked.entries.iter().map(|entry| entry.changed());
        Self {
            file: cache.join(format!("{}.json", &hexadecimal(&name)[..32])),
            fingerprint: fingerprint(walked),
            newest: newest.max().unwrap_or(0),
        }
    }

    /// What is remembered of the folder as it is now.
    pub(super) fn find(&self) -> Option<Record> {
        let text = fs::read(&self.file).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.fingerprint == self.fingerprint).then_some(record)
    }

    /// Remembers it. `begun`: when packing began. A cache that cannot be written
    /// is none: nothing depends on it.
    pub(super) fn remember(&self, sha256: &str, size: u64, begun: SystemTime) {
        let since = begun.duration_since(SystemTime::UNIX_EPOCH);
        let begun = since.map_or(0, |since| since.as_nanos().cast_signed());
        if self.newest + MOMENT > begun {
            return;
        }
        let record = Record {
            fingerprint: self.fingerprint.clone(),
            sha256: sha256.to_owned(),
            size,
        };
        if let Err(error) = self.write(&record) {
            tracing::debug!(%error, file = %self.file.display(), "the bundle is not remembered");
        }
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.persist(&self.file)?;
        Ok(())
    }
}

fn fingerprint(walked: &Walked) -> String {
    let mut hash = Sha256::new_with_prefix(FORMAT);
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
