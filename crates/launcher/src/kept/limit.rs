//! The limit of the disk usage of bundles.

use std::{fs, io, path::PathBuf};

use super::Kept;

/// The default limit: 10 GiB.
pub const DEFAULT_LIMIT: u64 = 10 << 30;

/// The limit of the disk usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The configured limit, or [`DEFAULT_LIMIT`].
    pub configured: u64,
    /// The effective limit: at most half of the disk space that is free apart from the
    /// bundles.
    pub bytes: u64,
}

impl Limit {
    /// The limit on a disk with `free` free bytes, if bundles use `used` bytes. Pure.
    #[must_use]
    pub fn on_disk(configured: u64, free: u64, used: u64) -> Self {
        Self {
            configured,
            bytes: configured.min(free.saturating_add(used) / 2),
        }
    }
}

impl Kept {
    fn limit_file(&self) -> PathBuf {
        self.root.join("limit")
    }

    /// Sets the limit in bytes. It stays in effect until another is set.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn set_limit(&self, bytes: u64) -> io::Result<()> {
        fs::create_dir_all(&self.root)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.root)?;
        io::Write::write_all(&mut file, bytes.to_string().as_bytes())?;
        file.persist(self.limit_file())
            .map_err(|failed| failed.error)?;
        Ok(())
    }

    /// The limit, if bundles use `used` bytes.
    #[must_use]
    pub fn limit(&self, used: u64) -> Limit {
        let text = fs::read_to_string(self.limit_file()).ok();
        let configured = text.and_then(|text| text.trim().parse().ok());
        // The closest existing ancestor, if the folder does not exist yet.
        let disk = self.root.ancestors().find_map(|folder| {
            rustix::fs::statvfs(folder)
                .ok()
                .map(|found| found.f_bavail.saturating_mul(found.f_frsize))
        });
        let free = disk.unwrap_or(u64::MAX);
        Limit::on_disk(configured.unwrap_or(DEFAULT_LIMIT), free, used)
    }
}
