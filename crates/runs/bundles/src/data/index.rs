//! The last determined sha256 of a folder's files, so that unchanged files are not read again. A
//! file is unchanged if its size, inode and times are.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::walk::Stamp;
use crate::bundle::hexadecimal;

/// The version of the format.
const FORMAT: u32 = 1;
/// Coarser than the timestamps of common file systems, in nanoseconds: a file that changed within
/// this time before it was read may change again without a visible change of its times.
pub(super) const MOMENT: i128 = 2_000_000_000;
/// The maximum size of the file in bytes.
const LARGEST: u64 = 1 << 30;

/// The known sha256 of files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    format: u32,
    folder: String,
    pub(super) files: HashMap<String, (Stamp, String)>,
}

impl Index {
    /// Reads the index of a folder. A damaged index is read as empty.
    pub(super) fn read(path: &Path, folder: &Path) -> Self {
        let empty = || Self {
            format: FORMAT,
            folder: folder.display().to_string(),
            files: HashMap::new(),
        };
        let small = std::fs::metadata(path).is_ok_and(|found| found.len() <= LARGEST);
        let text = match longshore_files::read_optional(path) {
            Ok(Some(text)) if small => text,
            _ => return empty(),
        };
        match serde_json::from_slice::<Self>(&text) {
            Ok(index) if index.format == FORMAT && index.folder == empty().folder => index,
            _ => empty(),
        }
    }

    /// Writes the index. Without it, files are read again, so an error is only logged.
    pub(super) fn write(&self, path: &Path) {
        let written = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(path);
            longshore_files::private_dir(folder).map_err(io::Error::other)?;
            // Several processes may write at the same time.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.persist(path).map_err(|failed| failed.error)?;
            Ok(())
        };
        if let Err(error) = written() {
            tracing::debug!(%error, "the sha256 of files are not remembered");
        }
    }
}

/// The file of a folder's index.
pub(super) fn path(cache: &Path, folder: &Path) -> PathBuf {
    let hash = Sha256::digest(folder.as_os_str().as_bytes());
    cache.join(format!("{}.json", &hexadecimal(&hash)[..32]))
}
