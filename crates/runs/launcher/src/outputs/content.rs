//! The contents of kept files, by their sha256: equal files are stored once.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{Outputs, OutputsError};
use crate::bundle::hexadecimal;

/// Buffer size in bytes.
const PIECE: usize = 128 * 1024;
/// The name prefix of incomplete contents.
pub(super) const UNFINISHED: &str = ".tmp";

/// Stored content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// The reason why content is not stored.
#[derive(Debug)]
pub(super) enum NotStored {
    /// The content is larger than the limit.
    TooLarge,
    /// The file of the task cannot be read.
    Read,
    /// The folder of outputs cannot be written.
    Write(OutputsError),
}

/// Copies up to `limit` bytes, and returns the sha256 and size of the copy. `None` if there are
/// more bytes.
pub(super) fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    limit: u64,
) -> Result<Option<Stored>, (io::Error, Side)> {
    let (mut hash, mut piece, mut size) = (Sha256::new(), vec![0; PIECE], 0_u64);
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => {
                let sha256 = hexadecimal(&hash.finalize());
                return Ok(Some(Stored { sha256, size }));
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err((error, Side::Read)),
        };
        size = size.saturating_add(count as u64);
        if size > limit {
            return Ok(None);
        }
        hash.update(&piece[..count]);
        to.write_all(&piece[..count])
            .map_err(|error| (error, Side::Write))?;
    }
}

/// The side of a copy that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

/// The error for a failed write.
fn write(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NotStored + use<> {
    let path = path.to_owned();
    move |source| NotStored::Write(OutputsError::not_kept(action, &path, source))
}

impl Outputs {
    pub(super) fn contents(&self) -> PathBuf {
        self.root.join("files")
    }

    /// The file of a content.
    pub(super) fn content(&self, sha256: &str) -> PathBuf {
        let start = sha256.get(..2).unwrap_or_default();
        self.contents().join(start).join(sha256)
    }

    /// Stores the content of an open file, unless it is larger than `limit` bytes.
    pub(super) fn store(&self, file: &mut File, limit: u64) -> Result<Stored, NotStored> {
        let folder = self.contents();
        fs::create_dir_all(&folder).map_err(write("create", &folder))?;
        let temporary = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&folder);
        let mut temporary = temporary.map_err(write("write to", &folder))?;
        let stored = match copy(file, temporary.as_file_mut(), limit) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Err(NotStored::TooLarge),
            Err((_, Side::Read)) => return Err(NotStored::Read),
            Err((error, Side::Write)) => return Err(write("write to", &folder)(error)),
        };
        let path = self.content(&stored.sha256);
        let exists = fs::symlink_metadata(&path)
            .is_ok_and(|found| found.is_file() && found.len() == stored.size);
        if !exists {
            let above = path.parent().unwrap_or(&folder).to_owned();
            fs::create_dir_all(&above).map_err(write("create", &above))?;
            // The file is not written any more.
            let read_only = Permissions::from_mode(0o400);
            let set = temporary.as_file().set_permissions(read_only);
            set.map_err(write("write to", &folder))?;
            let named = temporary.persist(&path);
            named.map_err(|error| write("create", &path)(error.error))?;
        }
        Ok(stored)
    }
}
