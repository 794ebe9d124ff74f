//! A limit of disk space that users set, and that leaves half of a small disk free.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

/// The limit of the disk space of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLimit {
    /// The configured limit, or the default.
    pub configured: u64,
    /// The effective limit: at most half of the disk space that is free apart from the content of
    /// the folder.
    pub bytes: u64,
}

impl DiskLimit {
    /// Returns the limit on a disk with `free` free bytes, if the folder uses `used` bytes. Pure.
    #[must_use]
    pub fn on_disk(configured: u64, free: u64, used: u64) -> Self {
        Self {
            configured,
            bytes: configured.min(free.saturating_add(used) / 2),
        }
    }

    /// Reads the limit in bytes that was saved to a file. Returns `None` if the file does not exist
    /// or is not readable.
    #[must_use]
    pub fn saved(file: &Path) -> Option<u64> {
        let text = fs::read_to_string(file).ok()?;
        text.trim().parse().ok()
    }

    /// Saves a limit in bytes to a file, whose folder is created if it is missing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(file: &Path, bytes: u64) -> io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(bytes.to_string().as_bytes())?;
        new.persist(file).map_err(|failed| failed.error)?;
        Ok(())
    }
}

/// Returns the free disk space in bytes at a path, which need not exist yet; `u64::MAX` if it is not
/// known.
#[must_use]
pub fn free_bytes(path: &Path) -> u64 {
    let free = path.ancestors().find_map(|folder| {
        let found = rustix::fs::statvfs(folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    });
    free.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_limit_is_at_most_half_of_the_free_disk() {
        assert_eq!(DiskLimit::on_disk(100, 1000, 0).bytes, 100);
        assert_eq!(DiskLimit::on_disk(100, 60, 20).bytes, 40);
        assert_eq!(DiskLimit::on_disk(100, 0, 100).bytes, 50);
        let most = DiskLimit::on_disk(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(most.bytes, u64::MAX / 2);
    }

    #[test]
    fn a_saved_limit_replaces_the_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deeper/limit");
        assert_eq!(DiskLimit::saved(&file), None);
        for bytes in [5, u64::MAX] {
            DiskLimit::save(&file, bytes).unwrap();
            assert_eq!(DiskLimit::saved(&file), Some(bytes));
        }
        fs::write(&file, "ten").unwrap();
        assert_eq!(DiskLimit::saved(&file), None);
    }

    #[test]
    fn space_is_measured_where_a_folder_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let free = free_bytes(&folder.path().join("not/yet"));
        assert!(free > 0 && free < u64::MAX, "{free}");
    }
}
