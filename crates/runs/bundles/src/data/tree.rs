//! The folders of manifests in a cache.

use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{DataError, DataFile, Manifest, parallel};

/// Creates the entries of a manifest in an empty folder. `content` is the path of a content.
pub(super) fn make(
    content: impl Fn(&DataFile) -> PathBuf + Sync,
    manifest: &Manifest,
    tree: &Path,
) -> Result<(), DataError> {
    let folders = folders(manifest);
    for folder in &folders {
        let path = tree.join(folder);
        fs::create_dir(&path).map_err(DataError::cache("create", &path))?;
    }
    parallel::each(&manifest.files, |file| {
        link(&content(file), &tree.join(&file.path))
    })?;
    for link in &manifest.links {
        let path = tree.join(&link.path);
        symlink(&link.target, &path).map_err(DataError::cache("create", &path))?;
    }
    // Changes the folder itself last, because nothing can be created in it without write
    // permission.
    for folder in folders.iter().rev().map(String::as_str).chain([""]) {
        let path = tree.join(folder);
        let set = fs::set_permissions(&path, Permissions::from_mode(0o555));
        set.map_err(DataError::cache("write", &path))?;
    }
    Ok(())
}

/// All folders, each after the folder that contains it.
fn folders(manifest: &Manifest) -> BTreeSet<String> {
    let mut folders: BTreeSet<String> = manifest.folders.iter().cloned().collect();
    let files = manifest.files.iter().map(|file| &file.path);
    let links = manifest.links.iter().map(|link| &link.path);
    for path in files.chain(links).chain(&manifest.folders) {
        let mut path = path.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            if !folders.insert(above.to_owned()) {
                break;
            }
            path = above;
        }
    }
    folders
}

/// Links a content, or copies it if the file system has no hard links or the file has too many.
fn link(content: &Path, path: &Path) -> Result<(), DataError> {
    let failed = DataError::cache("create", path);
    let linked = fs::hard_link(content, path);
    let cannot = |error: &io::Error| {
        let known = [Errno::MLINK, Errno::PERM, Errno::OPNOTSUPP, Errno::XDEV];
        let known = known.map(|known| Some(known.raw_os_error()));
        known.contains(&error.raw_os_error())
    };
    match linked {
        Err(error) if cannot(&error) => {
            let copied = || {
                fs::copy(content, path)?;
                let found = fs::metadata(content)?;
                File::open(path)?.set_modified(found.modified()?)
            };
            copied().map_err(failed)
        }
        linked => linked.map_err(failed),
    }
}

/// Writes the file system of a folder to disk.
pub(super) fn sync(folder: &Path) -> Result<(), DataError> {
    let synced = File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    synced.map_err(DataError::cache("write", folder))
}
