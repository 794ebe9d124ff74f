//! Errors of storing a bundle.

use std::{io, path::PathBuf};

use super::SECRET_LIMIT;
use crate::bundle::BundleError;

impl From<BundleError> for StoreError {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Stopped => Self::Stopped,
            error => Self::Pack(error),
        }
    }
}

/// The supported URLs of stores.
pub const FORMS: &str =
    "file:///an/absolute/path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix";

/// An error of storing a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is invalid.
    #[error("the store {url:?} {problem}; use {FORMS}")]
    Url {
        /// The URL without secrets.
        url: String,
        /// The problem.
        problem: String,
    },
    /// The bundle is too large for a Secret, and no store is configured.
    #[error(
        "the bundle has {size} bytes, but a Secret holds at most {SECRET_LIMIT}: set `store` (file:///…, s3://…, gs://… or az://…), or exclude large files with .longshoreignore; largest files: {largest}"
    )]
    TooLarge {
        /// The size of the bundle in bytes.
        size: u64,
        /// The largest files of the bundle.
        largest: String,
    },
    /// The bundle cannot be read again.
    #[error(
        "cannot read the packed bundle: {0}; check that no file was removed from the temporary folder"
    )]
    Read(#[source] io::Error),
    /// The archive cannot be created.
    #[error(transparent)]
    Pack(BundleError),
    /// The folder cannot be written.
    #[error("cannot write {} in the store: {source}; check the free space and the permission to write there", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The environment variables for the store are invalid.
    #[error("cannot use the store {store}: {problem}; see {remedy}")]
    Configuration {
        /// The URL of the store.
        store: String,
        /// The problem.
        problem: String,
        /// The variables to correct.
        remedy: &'static str,
    },
    /// The environment contains no credentials.
    #[error("no credentials for the store {store}: set {remedy} ({problem})")]
    NoCredentials {
        /// The URL of the store.
        store: String,
        /// The last source that was searched, and the result.
        problem: String,
        /// The variables that contain them.
        remedy: &'static str,
    },
    /// The store denies access.
    #[error(
        "the store {store} denies access: {problem}; check {remedy}, and that they have write access"
    )]
    Refused {
        /// The URL of the store.
        store: String,
        /// The message of the store.
        problem: String,
        /// The variables that contain the credentials.
        remedy: &'static str,
    },
    /// The store denies a listing of its objects.
    #[error(
        "the store {store} denies the listing of its objects: {problem}; check {remedy}, and that they have permission to list and read"
    )]
    NotListed {
        /// The URL of the store.
        store: String,
        /// The message of the store.
        problem: String,
        /// The variables that contain the credentials.
        remedy: &'static str,
    },
    /// The bucket does not exist.
    #[error("the store {store} does not exist: {problem}; create the bucket, or use another")]
    NoBucket {
        /// The URL of the store.
        store: String,
        /// The message of the service.
        problem: String,
    },
    /// The store has no space.
    #[error(
        "the store {store} is full: {problem}; delete objects that are no longer needed, or raise its quota"
    )]
    Full {
        /// The URL of the store.
        store: String,
        /// The message of the store.
        problem: String,
    },
    /// The store does not answer, or returns an unexpected response.
    #[error("cannot upload the bundle to {store}: {problem}; {remedy}")]
    Failed {
        /// The URL of the store.
        store: String,
        /// The problem.
        problem: String,
        /// The recommended action.
        remedy: String,
    },
    /// A signed URL cannot be created.
    #[error(
        "cannot sign a URL for the bundle in {store}: {problem}; pods fetch it by such a URL: use credentials that can sign (see docs/stores.md)"
    )]
    Sign {
        /// The URL of the store.
        store: String,
        /// The cause.
        problem: String,
    },
    /// The signed URL does not return the bundle.
    #[error("{store} has the bundle, but does not return it for the signed URL: {source}")]
    Unreadable {
        /// The URL of the store.
        store: String,
        /// The response.
        source: super::DownloadError,
    },
    /// The bundle no longer exists.
    #[error("the bundle {place} no longer exists in the store; pack and upload it again")]
    Gone {
        /// The location of the bundle.
        place: String,
    },
    /// An object other than a bundle cannot be read, signed or deleted.
    #[error("cannot {action} in the store {store}: {problem}; {remedy}")]
    Object {
        /// The attempted operation.
        action: &'static str,
        /// The URL of the store.
        store: String,
        /// The problem.
        problem: String,
        /// The recommended action.
        remedy: String,
    },
    /// The caller stopped the upload. All its parts were removed.
    #[error("the upload was stopped")]
    Stopped,
}
