//! Outputs: the files of a task's folder that a cluster on this machine keeps when the task
//! ends, until the run is removed.
//!
//! A role's [`OutputRequest`] selects the files. It is an annotation of the task's pod, which the
//! node reads. Therefore, pods need no credentials, and files of a killed task are kept, too. The
//! content of a file is stored once under its sha256 (`content`). The [`Manifest`] of a task lists
//! its files, and the files that were left out with the reasons.
//!
//! `collect` keeps the files of a task, `fetch` writes them to a folder and verifies them, and
//! `old` removes the files of runs that no longer exist. On other clusters, tasks upload their
//! files as one stream (`packed`), which has the list at its end. File names, annotations and
//! manifests are untrusted input: tasks choose them.

mod collect;
mod content;
mod error;
mod fetch;
mod files;
mod free;
mod manifest;
mod old;
pub(crate) mod packed;
mod part;
mod path;
mod patterns;
mod request;
mod tail;
mod task;
#[cfg(test)]
mod tests;
pub(crate) mod uploads;
mod walk;

use std::path::{Path, PathBuf};

pub use error::OutputsError;
pub(crate) use error::is_full;
pub(crate) use fetch::{Contents, fetch_from};
pub use fetch::{FetchOptions, Fetched, task_folder};
pub use files::OutputsUsage;
pub use manifest::{LeftOut, Manifest, OutputFile, Reason};
pub use patterns::check_pattern;
pub use request::{DEFAULT_MAX_BYTES, DEFAULT_MAX_FILES, MOST_FILES, MOST_PATTERNS, OutputRequest};
pub(crate) use tail::tail_of_running;
pub use task::OutputTask;

/// The folder of a cluster's outputs, which only this cluster uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    root: PathBuf,
}

impl Outputs {
    /// Returns the outputs in this folder, which does not have to exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}
