//! The progress of work on data.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The current operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Files are read to determine their sha256.
    Hashing,
    /// Contents are copied to the cache of this machine.
    Copying,
    /// Contents are uploaded to the store.
    Uploading,
    /// Objects of a bucket are downloaded.
    Downloading,
}

/// The progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataProgress {
    /// The step.
    pub step: Step,
    /// The number of bytes that are done.
    pub bytes: u64,
    /// The number of bytes in total.
    pub total: u64,
    /// The number of files in total.
    pub files: u64,
}

/// A listener for progress.
pub(super) type Listener = Arc<dyn Fn(DataProgress) + Send + Sync>;

/// Counts the bytes of a step, for several threads.
pub(super) struct Counter<'a> {
    step: Step,
    bytes: AtomicU64,
    total: u64,
    files: u64,
    listener: &'a (dyn Fn(DataProgress) + Send + Sync),
    /// Set to stop the work.
    pub(super) stop: &'a AtomicBool,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        step: Step,
        (files, total): (u64, u64),
        listener: &'a (dyn Fn(DataProgress) + Send + Sync),
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            step,
            bytes: AtomicU64::new(0),
            total,
            files,
            listener,
            stop,
        }
    }

    pub(super) fn add(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.listener)(DataProgress {
            step: self.step,
            bytes: before.saturating_add(bytes).min(self.total),
            total: self.total,
            files: self.files,
        });
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
