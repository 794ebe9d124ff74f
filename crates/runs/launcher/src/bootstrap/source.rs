//! Reads a bundle from the store's folder, where other processes may write at the same time.

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

/// Buffer size in bytes.
const PIECE: usize = 64 * 1024;

/// Copies a regular file and returns the sha256 of the copy. The file is opened and read only once,
/// so that the checked bytes are the unpacked ones.
pub(crate) fn copy(path: &Path, to: &mut File) -> Result<String, BootstrapError> {
    let read = |source: io::Error| {
        let path = path.to_owned();
        // Without the bundles folder, the store is not mounted.
        let is_mounted = path.parent().is_some_and(Path::is_dir);
        match source.kind() {
            io::ErrorKind::NotFound if is_mounted => BootstrapError::Gone { path },
            _ => BootstrapError::Bundle { path, source },
        }
    };
    // Does not block on a pipe until a writer opens it.
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
    // Limits the read, because a file that grows is damaged, and must not fill the disk.
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
