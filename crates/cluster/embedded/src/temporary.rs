//! Folders that are removed when their owner ends. Pods choose the content, so the removal must
//! work for every tree, and a start must not depend on it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use longshore_files::remove_tree;

use crate::{Error, abandoned};

/// The part of a name after which a number follows, for folders that are being removed.
const SUFFIX: &str = ".removed-";

/// The folder of a temporary cluster, which is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder that other users cannot read in the system's directory of temporary files.
    pub(crate) fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        abandoned::remove_once(&parent);
        let folder = tempfile::Builder::new()
            .prefix(abandoned::PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(Error::file("create a folder in", parent))?;
        let folder = Self(folder.keep());
        let mark = folder.path().join(abandoned::MARK);
        fs::write(&mark, "").map_err(Error::file("create", &mark))?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0) {
            tracing::warn!(%error, dir = %self.0.display(), "cannot remove the folder of a cluster");
        }
    }
}

/// Empties a folder for a start: the content that an earlier process has left is renamed, and
/// removed in the background, with the remains of earlier removals.
pub(crate) fn set_aside(folder: &Path) -> io::Result<()> {
    let mut old = remains(folder);
    let new = (0_u64..)
        .map(|number| with_suffix(folder, &format!("{SUFFIX}{number}")))
        .find(|path| !old.contains(path));
    let Some(new) = new else { return Ok(()) };
    match fs::rename(folder, &new) {
        Ok(()) => old.push(new),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if old.is_empty() {
        return Ok(());
    }
    let removal = std::thread::Builder::new().name("folder-remover".to_owned());
    removal.spawn(move || {
        for folder in old {
            if let Err(error) = remove_tree(&folder) {
                tracing::warn!(
                    %error, dir = %folder.display(),
                    "cannot remove a folder of an earlier cluster; the next start tries again"
                );
            }
        }
    })?;
    Ok(())
}

fn with_suffix(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The folders that earlier starts have set aside.
fn remains(folder: &Path) -> Vec<PathBuf> {
    let prefix = with_suffix(folder, SUFFIX);
    let entries = folder.parent().map(fs::read_dir).into_iter().flatten();
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let is_remains = |path: &PathBuf| {
        let bytes = path.as_os_str().as_encoded_bytes();
        bytes.starts_with(prefix.as_os_str().as_encoded_bytes())
    };
    paths.filter(is_remains).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_folder_is_empty_at_once_and_its_remains_are_removed_later() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("node");
        set_aside(&folder).unwrap();
        // From starts that ended before the removal.
        fs::create_dir_all(parent.path().join("node.removed-0/pods")).unwrap();
        fs::create_dir_all(parent.path().join("node-other")).unwrap();
        fs::create_dir_all(folder.join("pods/uid/volumes")).unwrap();
        set_aside(&folder).unwrap();
        assert!(!folder.exists());
        let begin = Instant::now();
        while fs::read_dir(parent.path()).unwrap().count() > 1 {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(parent.path().join("node-other").exists());
    }

    #[test]
    fn the_folder_of_a_cluster_ends_with_it() {
        let folder = TemporaryFolder::create().unwrap();
        let path = folder.path().to_owned();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::create_dir_all(path.join("node/pods")).unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
