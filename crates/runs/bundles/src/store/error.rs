//! Why a bundle cannot be stored.

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

/// Why a bundle cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is invalid.
    #[error("the store {url:?} {problem}; use {FORMS}")]
    Url {
        /// The URL without secrets.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bundle is too large for a Secret, and there is no store.
    #[error(
        "the bundle has {size} bytes, but a Secret holds at most {SECRET_LIMIT}: set `store` (file:///…, s3://…, gs://… or az://…), or exclude large files with .longshoreignore; largest files: {largest}"
    )]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest files in it.
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
        /// Its URL.
        store: String,
        /// What is wrong.
        problem: String,
        /// The variables to correct.
        remedy: &'static str,
    },
    /// There are no credentials.
    #[error("no credentials for the store {store}: set {remedy} ({problem})")]
    NoCredentials {
        /// Its URL.
        store: String,
        /// The last place that was searched, and the result.
        problem: String,
        /// The variables that contain them.
        remedy: &'static str,
    },
    /// The store denies access.
    #[error(
        "the store {store} denies access: {problem}; check {remedy}, and that they have write access"
    )]
    Refused {
        /// Its URL.
        store: String,
        /// Its message.
        problem: String,
        /// The variables that contain the credentials.
        remedy: &'static str,
    },
    /// The store denies a listing of its objects.
    #[error(
        "the store {store} denies the listing of its objects: {problem}; check {remedy}, and that they have permission to list and read"
    )]
    NotListed {
        /// Its URL.
        store: String,
        /// Its message.
        problem: String,
        /// The variables that contain the credentials.
        remedy: &'static str,
    },
    /// The bucket does not exist.
    #[error("the store {store} does not exist: {problem}; create the bucket, or use another")]
    NoBucket {
        /// Its URL.
        store: String,
        /// The message of the service.
        problem: String,
    },
    /// The store has no space.
    #[error(
        "the store {store} is full: {problem}; delete objects that are no longer needed, or raise its quota"
    )]
    Full {
        /// Its URL.
        store: String,
        /// Its message.
        problem: String,
    },
    /// The store does not answer, or returns an unexpected response.
    #[error("cannot upload the bundle to {store}: {problem}; {remedy}")]
    Failed {
        /// Its URL.
        store: String,
        /// What happened.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A signed URL cannot be created.
    #[error(
        "cannot sign a URL for the bundle in {store}: {problem}; pods fetch it by such a URL: use credentials that can sign (see docs/stores.md)"
    )]
    Sign {
        /// Its URL.
        store: String,
        /// The cause.
        problem: String,
    },
    /// The signed URL does not return the bundle.
    #[error("{store} has the bundle, but does not return it for the signed URL: {source}")]
    Unreadable {
        /// Its URL.
        store: String,
        /// The response.
        source: super::DownloadError,
    },
    /// The bundle no longer exists.
    #[error("the bundle {place} no longer exists in the store; pack and upload it again")]
    Gone {
        /// Its location.
        place: String,
    },
    /// An object other than a bundle cannot be read, signed or deleted.
    #[error("cannot {action} in the store {store}: {problem}; {remedy}")]
    Object {
        /// What was attempted.
        action: &'static str,
        /// Its URL.
        store: String,
        /// What happened.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The caller stopped the upload. No part of it is left.
    #[error("the upload was stopped")]
    Stopped,
}
