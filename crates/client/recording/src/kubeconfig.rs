//! The kubeconfig of a recorder or a replay, in a temporary folder that is deleted with it.
//! A process that is killed leaves its folder, which the next one deletes: the kubeconfig of
//! a running process is locked.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// The name of the cluster, the user and the context in the kubeconfig.
const NAME: &str = "longshore-recording";
/// The names of the folders begin with this.
const FOLDER_PREFIX: &str = "longshore-recording-";
/// The name of the file in the folder.
const FILE_NAME: &str = "kubeconfig";
/// The minimum age of a folder that is deleted: the file of a new one is not locked yet.
const MIN_AGE: Duration = Duration::from_secs(60);

/// A kubeconfig that is deleted on drop.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    _locked: File,
    _folder: tempfile::TempDir,
}

impl Kubeconfig {
    /// Writes a kubeconfig, and deletes those that killed processes have left.
    pub(crate) fn create(url: &str, namespace: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), MIN_AGE, url, namespace)
    }

    fn create_in(
        temporary: &Path,
        min_age: Duration,
        url: &str,
        namespace: &str,
    ) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(FOLDER_PREFIX)
            .tempdir_in(temporary)?;
        let path = folder.path().join(FILE_NAME);
        let mut options = File::options();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        // Not supported by every file system: then the file is not deleted after a kill.
        let _ = file.lock();
        file.write_all(text(url, namespace).as_bytes())?;
        let owner = file.metadata()?.uid();
        delete_left(temporary, owner, min_age);
        Ok(Self {
            path,
            _locked: file,
            _folder: folder,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Deletes the folders of processes that no longer run. Failures are not errors.
fn delete_left(temporary: &Path, owner: u32, min_age: Duration) {
    let Ok(entries) = fs::read_dir(temporary) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(FOLDER_PREFIX)
            && is_left(&entry.path(), owner, min_age).unwrap_or(false)
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            let folder = entry.path();
            tracing::debug!(%error, folder = %folder.display(), "cannot delete a kubeconfig");
        }
    }
}

/// Returns true if this is a folder of this user whose process has ended.
fn is_left(folder: &Path, owner: u32, min_age: Duration) -> io::Result<bool> {
    // Other users can create files in the folder for temporary files.
    let found = fs::symlink_metadata(folder)?;
    let age = found.modified()?.elapsed().unwrap_or_default();
    if !found.is_dir() || found.uid() != owner || age < min_age {
        return Ok(false);
    }
    match File::open(folder.join(FILE_NAME)) {
        Ok(file) => Ok(file.try_lock().is_ok()),
        Err(error) => Ok(error.kind() == io::ErrorKind::NotFound),
    }
}

/// A kubeconfig without credentials. It is YAML, because some clients cannot read JSON.
fn text(url: &str, namespace: &str) -> String {
    // A recording is not trusted. JSON strings are valid YAML strings.
    let namespace = serde_json::Value::from(namespace);
    format!(
        "apiVersion: v1
kind: Config
current-context: {NAME}
clusters:
- name: {NAME}
  cluster:
    server: {url}
users:
- name: {NAME}
  user: {{}}
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    user: {NAME}
    namespace: {namespace}
"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_kubeconfigs_of_killed_processes_are_deleted() {
        let temporary = tempfile::tempdir().unwrap();
        let create = |min_age| {
            let url = "http://127.0.0.1:1/x";
            Kubeconfig::create_in(temporary.path(), min_age, url, "default").unwrap()
        };
        let runs = create(Duration::ZERO);
        let left = temporary.path().join("longshore-recording-left");
        let other = temporary.path().join("longshore-of-others");
        for folder in [&left, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(FILE_NAME), "").unwrap();
        }
        // The folder may be a new one.
        let second = create(MIN_AGE);
        assert!(left.exists());
        let third = create(Duration::ZERO);
        assert!(!left.exists() && other.exists());
        for kubeconfig in [&runs, &second, &third] {
            assert!(kubeconfig.path().exists());
        }
        let path = runs.path().to_owned();
        drop(runs);
        assert!(!path.parent().unwrap().exists());
    }
}
