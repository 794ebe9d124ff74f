//! Writes a bundle into a folder atomically.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use super::{StoreError, address, options::Sent};

/// The number of bytes to copy between two checks of the stop flag.
const PIECE: usize = 1024 * 1024;
/// The number of bytes to write before a sync, which cannot be interrupted and takes many
/// seconds for a large bundle.
const SYNCED: usize = 8 * 1024 * 1024;

/// Copies the result of `open` to its content address. Does not call `open` if the bundle
/// exists.
pub(super) fn put(
    root: &Path,
    sha256: &str,
    size: u64,
    open: impl FnOnce() -> Result<Box<dyn Read + Send>, StoreError>,
    progress: &(dyn Fn(Sent) + Send + Sync),
    stopped: &AtomicBool,
) -> Result<(), StoreError> {
    let path = root.join(address(sha256));
    let error = |source| StoreError::Write {
        path: path.clone(),
        source,
    };
    if is_there(&path, size) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).map_err(error)?;
    // The temporary file is removed on every path except the last.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(error)?;
    let mut reader = open()?;
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    let mut unsynced = 0;
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
        unsynced += read;
        if unsynced >= SYNCED {
            file.as_file().sync_data().map_err(error)?;
            unsynced = 0;
        }
        progress(Sent {
            bytes,
            total: size,
            ..Sent::default()
        });
    }
    file.as_file().sync_all().map_err(error)?;
    readable(file.path()).map_err(error)?;
    file.persist(&path).map_err(|failed| error(failed.error))?;
    Ok(())
}

/// Returns true if the bundle exists. Updates its modification time, because a collector removes
/// bundles that have not been used for a long time.
fn is_there(path: &Path, size: u64) -> bool {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == size) {
        return false;
    }
    let Ok(file) = fs::File::open(path) else {
        return false;
    };
    // Another user's file keeps its time. Only its owner collects it.
    let _ = file.set_modified(SystemTime::now());
    // A collector renames the file before it checks the time again. Therefore, a file that still
    // has its name after its time was set is not removed.
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(named)) => identity(opened) == identity(named),
        _ => false,
    }
}

/// Makes a file readable for all users, because pods may run as another user.
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
