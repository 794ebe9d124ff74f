//! The files of kept bundles. A bundle's modification time is its last use.
//!
//! A process that uses a bundle sets the time, and then checks that the file still has its name
//! (`store/folder.rs`). A process that removes a bundle renames it, and then checks that the time
//! is unchanged. Therefore, at least one of the two notices the other.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Kept, KeptBundle};
use crate::store;

/// The name prefix of a bundle that is being removed.
const REMOVING: &str = ".removing-";
/// The name prefix of uploads.
const UPLOAD: &str = ".tmp";
/// The age at which an upload or removal counts as abandoned by a killed process.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
const ENDING: &str = ".tar.gz";

impl Kept {
    pub(super) fn path(&self, sha256: &str) -> PathBuf {
        self.root.join(store::address(sha256))
    }

    /// The marker of a released bundle. Its modification time is the bundle's last use at the
    /// time of the release.
    fn mark(&self, sha256: &str) -> PathBuf {
        self.root.join("released").join(sha256)
    }

    /// The bundles, least recently used first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn bundles(&self) -> io::Result<Vec<KeptBundle>> {
        let mut bundles = Vec::new();
        let copies = self.copies();
        for (name, found) in self.files()? {
            let sha256 = name.strip_suffix(ENDING).filter(|name| is_sha256(name));
            if let (Some(sha256), true) = (sha256, found.is_file()) {
                let used = found.modified()?;
                let mark = fs::metadata(self.mark(sha256)).and_then(|mark| mark.modified());
                let copy = copies.iter().find(|copy| copy.sha256 == sha256);
                bundles.push(KeptBundle {
                    copy: copy.map(|copy| copy.bytes),
                    sha256: sha256.to_owned(),
                    size: found.len(),
                    used,
                    released: mark.is_ok_and(|mark| mark == used),
                });
            }
        }
        bundles.sort_by(|a, b| (a.used, &a.sha256).cmp(&(b.used, &b.sha256)));
        Ok(bundles)
    }

    fn files(&self) -> io::Result<Vec<(String, fs::Metadata)>> {
        let folder = self.path("");
        let entries = match fs::read_dir(folder.parent().unwrap_or(&self.root)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            match entry.metadata() {
                Ok(found) => files.push((name, found)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    /// Marks a bundle for removal as soon as no pod needs it. A later use invalidates the mark.
    pub(super) fn mark_released(&self, bundle: &KeptBundle) -> io::Result<()> {
        let mark = self.mark(&bundle.sha256);
        fs::create_dir_all(mark.parent().unwrap_or(&self.root))?;
        fs::File::create(mark)?.set_modified(bundle.used)
    }

    /// Removes a bundle unless it was used since it was listed. Returns true if it was removed.
    pub(super) fn remove(&self, bundle: &KeptBundle) -> io::Result<bool> {
        let path = self.path(&bundle.sha256);
        let aside = format!("{REMOVING}{}-{}", bundle.sha256, std::process::id());
        let aside = path.with_file_name(aside);
        match fs::rename(&path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            renamed => renamed?,
        }
        if fs::metadata(&aside)?.modified()? != bundle.used {
            put_back(&aside, &path)?;
            return Ok(false);
        }
        fs::remove_file(&aside)?;
        let _ = fs::remove_file(self.mark(&bundle.sha256));
        self.remove_copies(&bundle.sha256)?;
        Ok(true)
    }

    /// Cleans up after killed processes: incomplete removals and uploads.
    pub(super) fn recover(&self, now: SystemTime) -> io::Result<()> {
        for (name, found) in self.files()? {
            let path = self.path("").with_file_name(&name);
            let changed = SystemTime::UNIX_EPOCH
                .checked_add(Duration::from_secs(found.ctime().try_into().unwrap_or(0)));
            let age = changed.and_then(|changed| now.duration_since(changed).ok());
            if age.is_none_or(|age| age < ABANDONED) {
                continue;
            }
            let removed = name.strip_prefix(REMOVING);
            let removed = removed.and_then(|rest| rest.split('-').next());
            if let Some(sha256) = removed.filter(|name| is_sha256(name)) {
                put_back(&path, &self.path(sha256))?;
            } else if name.starts_with(UPLOAD) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// Restores the name of a bundle unless it was uploaded again meanwhile.
fn put_back(aside: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, aside, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => fs::remove_file(aside),
        // Not all file systems support this rename. Overwriting is safe, because the content is the
        // same.
        Err(_) => fs::rename(aside, path),
    }
}

pub(super) fn is_sha256(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
