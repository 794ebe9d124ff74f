//! Removes the folders of temporary clusters whose process was killed before it could remove them.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::Once,
    time::{Duration, SystemTime},
};

use crate::{layout::Layout, lock::Lock};

/// The prefix of the folders' names.
pub(crate) const PREFIX: &str = "longshore-";
/// The name of the file that distinguishes these folders from a user's data folder in the same
/// parent folder.
pub(crate) const MARK: &str = "temporary";
/// A younger folder can belong to a cluster that has not taken its lock yet.
const MINIMUM_AGE: Duration = Duration::from_secs(60);

/// Removes the abandoned folders in the background, at most once in each process.
pub(crate) fn remove_once(parent: &Path) {
    static ONCE: Once = Once::new();
    let parent = parent.to_owned();
    ONCE.call_once(move || {
        std::thread::spawn(move || remove(&parent, SystemTime::now()));
    });
}

fn remove(parent: &Path, now: SystemTime) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Ok(found) = entry.metadata() else {
            continue;
        };
        let age = found.modified().ok();
        let age = age.and_then(|modified| now.duration_since(modified).ok());
        let is_old = age.is_some_and(|age| age > MINIMUM_AGE);
        if !is_ours || !is_old || !found.is_dir() || found.uid() != user {
            continue;
        }
        let lock = Layout::new(entry.path()).lock();
        // A folder without a lock file does not belong to a cluster. A temporary cluster whose lock
        // is free is abandoned.
        if lock.exists()
            && entry.path().join(MARK).exists()
            && let Ok(Some(_held)) = Lock::try_exclusive(&lock)
        {
            let _ = longshore_files::remove_tree(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_folders_of_abandoned_clusters_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, files: &[&str]| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            for file in files {
                fs::write(path.join(file), "").unwrap();
            }
            path
        };
        let abandoned = folder("longshore-a", &["lock", MARK]);
        let other = folder("longshore-b", &[MARK]);
        let running = folder("longshore-c", &["lock", MARK]);
        let foreign = folder("x-longshore", &["lock", MARK]);
        // A user's cluster that is not running.
        let data = folder("longshore-data", &["lock", "objects"]);
        let lock = Lock::try_exclusive(&running.join("lock")).unwrap();
        remove(parent.path(), SystemTime::now());
        assert!(abandoned.exists(), "a young folder must not be removed");
        remove(parent.path(), SystemTime::now() + 2 * MINIMUM_AGE);
        assert!(!abandoned.exists());
        assert!(other.exists() && running.exists() && foreign.exists() && data.exists());
        drop(lock);
    }
}
