//! The logs of deleted pods that an instance keeps, and the limit of their disk space.

use std::io;

use longshore_files::{DiskLimit, free_bytes};

use crate::layout::Layout;

/// The logs of deleted pods of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptLogs {
    /// The size of the logs in bytes.
    pub bytes: u64,
    /// The limit of the size. The node removes the oldest logs beyond it.
    pub limit: DiskLimit,
}

impl KeptLogs {
    /// Measures the logs. Files that are not readable count as empty.
    #[must_use]
    pub fn measure(layout: &Layout, ephemeral: bool) -> Self {
        let data = layout.node(ephemeral);
        let bytes = longshore_node::kept_log_bytes(&data);
        let configured = DiskLimit::saved(&layout.kept_logs_limit());
        let configured = configured.unwrap_or(longshore_node::KEPT_LOGS_LIMIT);
        Self {
            bytes,
            limit: DiskLimit::on_disk(configured, free_bytes(&data), bytes),
        }
    }

    /// Sets the limit in bytes. It stays in effect until another is set, also for clusters that are
    /// started in the same folder later.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn set_limit(layout: &Layout, bytes: u64) -> io::Result<()> {
        DiskLimit::save(&layout.kept_logs_limit(), bytes)
    }
}
