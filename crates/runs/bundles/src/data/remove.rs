//! Removes data from a cache.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    os::{fd::IntoRawFd as _, unix::fs::MetadataExt as _},
    path::Path,
    time::{Duration, SystemTime},
};

use longshore_files::remove_tree;
use rustix::fs::{Mode, OFlags};

use super::{DataCache, DataError, KeptData, Manifest, cache::UNFINISHED};

/// The time for which data counts as used after its last use. It covers runs that are being
/// submitted and pods that are starting, whose objects or processes do not exist yet.
const START_GRACE: Duration = Duration::from_secs(3600);

/// Exclusive access to a cache.
#[derive(Debug)]
pub struct Removal {
    cache: DataCache,
    _lock: File,
}

impl Removal {
    /// Removes data, and the contents that no other data uses, except data that was used after it
    /// was listed. Returns the removed data, and the number of freed bytes.
    ///
    /// # Errors
    /// The cache cannot be read or written.
    pub fn remove(&self, unwanted: &[KeptData]) -> Result<(Vec<KeptData>, u64), DataError> {
        let cache = &self.cache;
        let before = cache.bytes();
        let mut removed = Vec::new();
        for data in unwanted {
            let manifest = cache.manifest(&data.sha256);
            let found = fs::metadata(&manifest).and_then(|found| found.modified());
            if found.is_ok_and(|used| used != data.used) {
                continue;
            }
            // A folder without its manifest does not count as complete.
            gone(fs::remove_file(&manifest)).map_err(DataError::cache("remove", &manifest))?;
            let folder = cache.tree(&data.sha256);
            remove_tree(&folder).map_err(DataError::cache("remove", &folder))?;
            removed.push(data.clone());
        }
        cache.clean()?;
        Ok((removed, before.saturating_sub(cache.bytes())))
    }
}

/// Keeps other processes from removing data of a cache.
#[derive(Debug)]
pub struct DataGuard {
    _lock: Option<File>,
}

impl DataCache {
    /// Waits until no other process uses the cache, so that data can be removed. The caller must
    /// find out only afterwards which data runs use. `None` if the cache does not exist.
    ///
    /// # Errors
    /// The cache cannot be locked.
    pub fn alone(&self) -> Result<Option<Removal>, DataError> {
        if !self.root.is_dir() {
            return Ok(None);
        }
        let file = self.lock_file("lock")?;
        let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive);
        // Fails without locks, because another process may place data at the same time.
        locked.map_err(|error| DataError::cache("lock", &self.root)(error.into()))?;
        Ok(Some(Removal {
            cache: self.clone(),
            _lock: file,
        }))
    }

    /// Returns true if a task uses the folder of the data, according to [`hold`].
    #[must_use]
    pub fn is_held(&self, data: &KeptData) -> bool {
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match File::open(self.tree(&data.sha256)) {
            // If the file system has no locks, everything counts as used.
            Ok(folder) => rustix::fs::flock(&folder, operation).is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Removes data that no task holds, least recently used first, until the missing contents of a
    /// manifest fit in the cache within a limit.
    ///
    /// # Errors
    /// The cache cannot be read or written.
    pub fn make_room(&self, manifest: &Manifest, limit: u64) -> Result<(), DataError> {
        drop(self.lock()?);
        let limit = limit.saturating_sub(self.missing(manifest).1);
        if self.bytes() <= limit {
            return Ok(());
        }
        if let Some(alone) = self.alone()? {
            let now = SystemTime::now();
            alone.remove(&self.over_limit(limit, now, |data| self.is_held(data))?)?;
        }
        Ok(())
    }

    /// Keeps other processes from removing data, until the guard is dropped.
    ///
    /// # Errors
    /// The cache cannot be created or locked.
    pub fn guard(&self) -> Result<DataGuard, DataError> {
        Ok(DataGuard {
            _lock: self.lock()?,
        })
    }

    /// Selects the least recently used data to remove until all contents have at most `limit`
    /// bytes. Data that was used within the last hour is kept.
    ///
    /// # Errors
    /// The cache cannot be read.
    pub fn over_limit(
        &self,
        limit: u64,
        now: SystemTime,
        is_used: impl Fn(&KeptData) -> bool,
    ) -> Result<Vec<KeptData>, DataError> {
        let mut left = self.bytes();
        let mut unwanted = Vec::new();
        for data in self.kept()? {
            let is_recent = now
                .duration_since(data.used)
                .is_ok_and(|age| age < START_GRACE);
            if left <= limit {
                break;
            }
            if is_recent || is_used(&data) {
                continue;
            }
            // An upper bound, because other data may have the same contents.
            left = left.saturating_sub(data.bytes);
            unwanted.push(data);
        }
        Ok(unwanted)
    }

    /// Removes unused contents, folders of killed processes, and replaced folders. Requires
    /// exclusive access to the cache.
    fn clean(&self) -> Result<(), DataError> {
        let known: BTreeSet<String> = self.kept()?.into_iter().map(|data| data.sha256).collect();
        let trees = self.root.join("trees");
        for entry in entries(&trees)? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(UNFINISHED) || !known.contains(&name) {
                let path = entry.path();
                remove_tree(&path).map_err(DataError::cache("remove", &path))?;
            }
        }
        for folder in entries(&self.files())? {
            let path = folder.path();
            if !path.is_dir() {
                gone(fs::remove_file(&path)).map_err(DataError::cache("remove", &path))?;
                continue;
            }
            for content in entries(&path)? {
                // A single link means that no data uses the content, or that the file system has no
                // hard links.
                let is_unused = content.metadata().is_ok_and(|found| found.nlink() == 1);
                if is_unused {
                    let path = content.path();
                    gone(fs::remove_file(&path)).map_err(DataError::cache("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

/// Marks the folder of data as used while this process, or a process that it executes or starts, is
/// running.
pub fn hold(folder: &Path) {
    // Without CLOEXEC, so that the command inherits the lock.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    let operation = rustix::fs::FlockOperation::NonBlockingLockShared;
    if let Ok(folder) = opened
        && rustix::fs::flock(&folder, operation).is_ok()
    {
        let _ = folder.into_raw_fd();
    }
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, DataError> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .and_then(Iterator::collect)
            .map_err(DataError::cache("read", folder)),
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
