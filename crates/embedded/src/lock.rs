//! The lock of an instance: a file that its owner keeps locked. The kernel
//! lets go of it when the owner dies, however that happens, so that it says
//! more than any number in a file.

use std::{
    fs::{File, TryLockError},
    path::Path,
};

use crate::{Error, files};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

fn outcome(
    file: File,
    path: &Path,
    result: Result<(), TryLockError>,
) -> Result<Option<Lock>, Error> {
    match result {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::file("lock", path)(error)),
    }
}

impl Lock {
    /// Takes the lock for this process alone; `None` when another has it.
    pub(crate) fn try_exclusive(path: &Path) -> Result<Option<Self>, Error> {
        let file = files::open(path)?;
        let result = file.try_lock();
        outcome(file, path, result)
    }

    /// Takes the lock with others who share it; `None` when one has it alone.
    pub(crate) fn try_shared(path: &Path) -> Result<Option<Self>, Error> {
        let file = files::open(path)?;
        let result = file.try_lock_shared();
        outcome(file, path, result)
    }

    /// Waits until it has the lock alone; blocks the thread.
    pub(crate) fn exclusive(path: &Path) -> Result<Self, Error> {
        let file = files::open(path)?;
        file.lock().map_err(Error::file("lock", path))?;
        Ok(Self { _file: file })
    }

    /// Whether some process has the lock alone. Never creates the file.
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
    fn one_owner_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!Lock::is_held(&path).unwrap());
        assert!(!path.exists(), "asking leaves nothing behind");
        let lock = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::is_held(&path).unwrap());
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        assert!(Lock::try_shared(&path).unwrap().is_none());
        drop(lock);
        assert!(!Lock::is_held(&path).unwrap());
    }
}
