//! Puts a bundle into a folder: it appears there complete, or not at all.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use super::{StoreError, address, options::Sent};

/// How much is copied between two looks at whether it is still wanted.
const PIECE: usize = 1024 * 1024;
/// How much is written before it is brought to the disk: nothing can end that, and of a
/// large bundle it may take many seconds.
const SYNCED: usize = 8 * 1024 * 1024;

/// Copies what `open` gives to its content address, unless it is there: then nothing is
/// opened.
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
    // A temporary file removes itself on every way out but the last.
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

/// Whether the bundle is there. If so, its modification time becomes the time of this
/// use: a collector removes what has not been used for long.
fn is_there(path: &Path, size: u64) -> bool {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == size) {
        return false;
    }
    let Ok(file) = fs::File::open(path) else {
        return false;
    };
    // Another user's file keeps its time; only its owner collects it.
    let _ = file.set_modified(SystemTime::now());
    // A collector takes the file's name away before it looks at the time once more. So a
    // file that has its name after its time was set is not removed.
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(named)) => identity(opened) == identity(named),
        _ => false,
    }
}

/// Pods may run as another user than the one who packs.
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
