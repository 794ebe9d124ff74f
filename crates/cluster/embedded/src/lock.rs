//! The lock of an instance: a file that its owner keeps locked. The kernel releases
//! the lock when the owner dies for any reason, so the lock is more reliable than a
//! process ID in a file.

use std::{
    fs::{File, Metadata, TryLockError},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use crate::{Error, files};

/// A lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

fn outcome(
    file: File,
    path: &Path,
    result: Result<(), TryLockError>,
) -> Result<Option<Lock>, Error> {
    match result {
        Ok(()) => Ok(Some(Lock { file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::file("lock", path)(error)),
    }
}

impl Lock {
    /// Takes the exclusive lock; `None` if another process holds the lock.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        let file = files::open_lock(path)?;
        let result = file.try_lock();
        outcome(file, path, result)
    }

    /// Takes a shared lock; `None` if another process holds the lock exclusively.
    pub(crate) fn try_shared(path: &Path) -> Result<Option<Self>, Error> {
        let file = files::open_lock(path)?;
        let result = file.try_lock_shared();
        outcome(file, path, result)
    }

    /// Waits for the exclusive lock. Blocks the thread.
    pub(crate) fn exclusive(path: &Path) -> Result<Self, Error> {
        let file = files::open_lock(path)?;
        file.lock().map_err(Error::file("lock", path))?;
        Ok(Self { file })
    }

    /// Returns true if the file of the lock still has this path. Another process can take the lock
    /// at the path if the file was removed, or if its folder was renamed.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let identity = |file: Metadata| (file.dev(), file.ino());
        let own = self.file.metadata().map(identity);
        let found = path.symlink_metadata().map(identity);
        matches!((own, found), (Ok(own), Ok(found)) if own == found)
    }

    /// Returns true if a process holds the lock exclusively. Never creates the file.
    pub(crate) fn is_held(path: &Path) -> Result<bool, Error> {
        if !path.exists() {
            return Ok(false);
        }
        Ok(Self::try_shared(path)?.is_none())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_lock_has_one_owner_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!Lock::is_held(&path).unwrap());
        assert!(!path.exists(), "a check must not create the file");
        let lock = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::is_held(&path).unwrap());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        assert!(Lock::try_shared(&path).unwrap().is_none());
        drop(lock);
        assert!(!Lock::is_held(&path).unwrap());
    }

    #[test]
    fn a_lock_knows_when_its_file_is_not_at_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        let path = folder.join("lock");
        let aside = dir.path().join("aside");
        std::fs::create_dir(&folder).unwrap();
        let lock = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(lock.is_at(&path));
        std::fs::rename(&folder, &aside).unwrap();
        assert!(!lock.is_at(&path), "renamed");
        std::fs::create_dir(&folder).unwrap();
        let _next = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(!lock.is_at(&path), "replaced");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!lock.is_at(&path), "removed");
        std::fs::rename(&aside, &folder).unwrap();
        assert!(lock.is_at(&path), "returned");
    }
}
