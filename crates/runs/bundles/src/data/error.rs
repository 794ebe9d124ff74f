//! Errors of preparing data for tasks.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::store::{DownloadError, StoreError};

/// An error of preparing data for tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The folder does not exist or is not a folder.
    #[error("the data folder {} {problem}", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// An entry of the folder cannot be data.
    #[error(
        "{path:?} cannot be data: {problem}; exclude it with .longshoreignore in the data folder"
    )]
    Entry {
        /// The path in the folder.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// An ignore pattern is invalid.
    #[error("cannot read {}: {problem}", path.display())]
    Ignore {
        /// The ignore file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// There are too many entries.
    #[error(
        "{place} has more than {most} {what}; pack them into fewer, larger files, such as tar archives"
    )]
    TooMany {
        /// The folder, or the bucket.
        place: String,
        /// The kind of entries.
        what: &'static str,
        /// The maximum.
        most: usize,
    },
    /// A file of the folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was read; run again when nothing writes to the folder", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The cache cannot be written.
    #[error("cannot {action} {} in the data cache: {source}", path.display())]
    Cache {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk lacks space for the data.
    #[error(
        "no space for {bytes} bytes of data in {}: {free} bytes can be used, because a fiftieth of the disk, at most 1 GiB, is kept free; free some (`longshore data prune` removes unused data of the embedded cluster), or use less data", path.display()
    )]
    Full {
        /// The cache.
        path: PathBuf,
        /// The number of missing bytes.
        bytes: u64,
        /// The number of free bytes.
        free: u64,
    },
    /// A manifest is not valid.
    #[error("the list of files {place} is not valid: {problem}")]
    Manifest {
        /// The location of the manifest.
        place: String,
        /// The problem.
        problem: String,
    },
    /// A content differs from the requested one.
    #[error(
        "{place} is damaged: {problem}; delete it from the store, and run again to upload it again"
    )]
    Damaged {
        /// The location in the store.
        place: String,
        /// The difference.
        problem: String,
    },
    /// An object of a bucket has changed since the run was submitted.
    #[error("{place} has changed since the run was submitted; submit it again")]
    ObjectChanged {
        /// The object.
        place: String,
    },
    /// An object cannot be downloaded.
    #[error("cannot fetch the data {path:?}: {problem}")]
    Download {
        /// The path in the folder of the data.
        path: String,
        /// The problem.
        problem: String,
    },
    /// The list of signed URLs lacks a file.
    #[error("the list of URLs has none for {path:?}; submit the run again")]
    NoUrl {
        /// The path in the folder of the data.
        path: String,
    },
    /// The list of URLs is too large for the Secret of the run.
    #[error(
        "the list of {files} files does not fit into the Secret of the run: set `store` (s3://…, gs://… or az://…), which then keeps it"
    )]
    NoStore {
        /// The number of files.
        files: u64,
    },
    /// The bucket has nothing at this prefix.
    #[error("{place} has no objects; check the prefix")]
    Empty {
        /// The bucket and prefix.
        place: String,
    },
    /// An object cannot be a file.
    #[error("the object {key:?} of {place} cannot be a file: {problem}")]
    Object {
        /// The bucket.
        place: String,
        /// The object's key.
        key: String,
        /// The problem.
        problem: String,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller stopped the work.
    #[error("the work on the data was stopped")]
    Stopped,
}

impl DataError {
    /// The error for a failed operation in the cache.
    pub(super) fn cache(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Cache {
            action,
            path,
            source,
        }
    }

    /// The error for a failed download of a file.
    #[must_use]
    pub fn download(path: &str, error: DownloadError) -> Self {
        let problem = match error {
            DownloadError::Full { path, size } => {
                return Self::Full {
                    path,
                    bytes: size,
                    free: 0,
                };
            }
            DownloadError::Write { path, source } => {
                return Self::Cache {
                    action: "write",
                    path,
                    source,
                };
            }
            DownloadError::WrongSize {
                place,
                found,
                expected,
            } => {
                return Self::Damaged {
                    place,
                    problem: format!("it has {found} bytes, not {expected}"),
                };
            }
            DownloadError::Changed { place } => return Self::ObjectChanged { place },
            DownloadError::Refused { place, problem } => format!(
                "the store denies access to {place} ({problem}): the signed URL has expired, or its signer no longer has access; submit the run again"
            ),
            DownloadError::Missing { place, problem } => format!(
                "{place} no longer exists ({problem}); submit the run again to upload it again"
            ),
            DownloadError::NotSent { place } => format!(
                "{place} was not uploaded: this run is the output of --dry-run; submit it with `longshore run`"
            ),
            DownloadError::Failed {
                place,
                problem,
                attempts,
            } => format!(
                "{place}: {problem} (after {attempts} attempts); pods must reach the store at the same address as the client"
            ),
        };
        Self::Download {
            path: path.to_owned(),
            problem,
        }
    }
}
