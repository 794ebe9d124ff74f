//! Puts a bundle into a folder: it appears there complete, or not at all.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{Sent, StoreError, address};

/// How much is copied between two looks at whether it is still wanted.
const PIECE: usize = 1024 * 1024;

/// Copies `reader` to its content address, unless it is there.
pub(super) fn put(
    root: &Path,
    sha256: &str,
    size: u64,
    reader: impl FnOnce() -> io::Result<Box<dyn Read + Send>>,
    progress: &(dyn Fn(Sent) + Send + Sync),
    stopped: &AtomicBool,
) -> Result<PathBuf, StoreError> {
    let path = root.join(address(sha256));
    let error = |source| StoreError::Write {
        path: path.clone(),
        source,
    };
    if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == size) {
        return Ok(path);
    }
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(error)?;
    // A temporary file removes itself on every way out but the last.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(error)?;
    let mut reader = reader().map_err(StoreError::Read)?;
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(StoreError::Stopped);
        }
        let read = reader.read(&mut piece).map_err(StoreError::Read)?;
        if read == 0 {
            break;
        }
        file.write_all(&piece[..read]).map_err(error)?;
        bytes += read as u64;
        progress(Sent {
            bytes,
            total: size,
            ..Sent::default()
        });
    }
    file.as_file().sync_all().map_err(error)?;
    readable(file.path()).map_err(error)?;
    file.persist(&path).map_err(|failed| error(failed.error))?;
    Ok(path)
}

/// Pods may run as another user than the one who packs.
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
