//! The limit of the disk usage of bundles.

use std::{io, path::PathBuf};

use longshore_files::{DiskLimit, free_bytes};

use super::Kept;

/// The default limit: 10 GiB.
pub const DEFAULT_LIMIT: u64 = 10 << 30;

impl Kept {
    fn limit_file(&self) -> PathBuf {
        self.root.join("limit")
    }

    /// Sets the limit in bytes. It remains in effect until another one is set.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn set_limit(&self, bytes: u64) -> io::Result<()> {
        DiskLimit::save(&self.limit_file(), bytes)
    }

    /// The limit, if bundles use `used` bytes.
    #[must_use]
    pub fn limit(&self, used: u64) -> DiskLimit {
        let configured = DiskLimit::saved(&self.limit_file()).unwrap_or(DEFAULT_LIMIT);
        DiskLimit::on_disk(configured, free_bytes(&self.root), used)
    }
}
