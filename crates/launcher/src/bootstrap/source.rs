//! The store's file of a bundle, which others may write to while it is read.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use super::BootstrapError;
use crate::bundle::hexadecimal;

/// Bytes that are moved at a time.
const PIECE: usize = 64 * 1024;

/// Copies a regular file and gives the sha256 of what was copied. The file is opened and
/// read once, so that what is checked is what is unpacked.
pub(crate) fn copy(path: &Path, to: &mut File) -> Result<String, BootstrapError> {
    let read = |source: io::Error| {
        let path = path.to_owned();
        // A store that is not mounted has no folder of bundles either.
        let is_mounted = path.parent().is_some_and(Path::is_dir);
        match source.kind() {
            io::ErrorKind::NotFound if is_mounted => BootstrapError::Gone { path },
            _ => BootstrapError::Bundle { path, source },
        }
    };
    // A pipe must not hold the task up until someone writes to it.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(read)?;
    let found = file.metadata().map_err(read)?;
    if !found.is_file() {
        return Err(BootstrapError::NotRegular {
            path: path.to_owned(),
        });
    }
    // A file that grows is damaged in any case, and must not fill the disk.
    let mut file = file.take(found.len());
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        let count = match file.read(&mut piece) {
            Ok(0) => return Ok(hexadecimal(&hash.finalize())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(read(error)),
        };
        hash.update(&piece[..count]);
        to.write_all(&piece[..count])
            .map_err(|source| BootstrapError::Write {
                path: path.to_owned(),
                source,
            })?;
    }
}
