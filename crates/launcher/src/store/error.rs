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

/// The URLs of stores.
pub(crate) const FORMS: &str =
    "file:///an/absolute/path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix";

/// Why a bundle cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL is none that is understood.
    #[error("the store {url:?} {problem}; use {FORMS}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The bundle is too large for a Secret, and no store is given.
    #[error(
        "the bundle has {size} bytes, more than the {SECRET_LIMIT} that fit a Secret: set `store` (file:///…, s3://…, gs://… or az://…), or leave large files out with .longshoreignore; the largest: {largest}"
    )]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest files in it.
        largest: String,
    },
    /// The bundle cannot be read again.
    #[error("cannot read the packed bundle: {0}; was a file of the temporary folder removed?")]
    Read(#[source] io::Error),
    /// The archive was not made before, and cannot be made now.
    #[error(transparent)]
    Pack(BundleError),
    /// The folder cannot be written.
    #[error("cannot write {} in the store: {source}; is there room, and may you write there?", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What the environment says about the store is not understood.
    #[error("cannot use the store {store}: {problem}; see {remedy}")]
    Configuration {
        /// Its URL.
        store: String,
        /// What is wrong.
        problem: String,
        /// The variables that say otherwise.
        remedy: &'static str,
    },
    /// There are no credentials.
    #[error("no credentials for the store {store}: set {remedy} ({problem})")]
    NoCredentials {
        /// Its URL.
        store: String,
        /// Where they were looked for last, and what came of it.
        problem: String,
        /// The variables that have them.
        remedy: &'static str,
    },
    /// The store refuses.
    #[error("the store {store} refuses: {problem}; check {remedy}, and that they may write there")]
    Refused {
        /// Its URL.
        store: String,
        /// What it says.
        problem: String,
        /// The variables that have the credentials.
        remedy: &'static str,
    },
    /// The bucket is not there.
    #[error("the store {store} is not there: {problem}; create the bucket, or name another")]
    NoBucket {
        /// Its URL.
        store: String,
        /// What the service says.
        problem: String,
    },
    /// The store does not answer, or not as it should.
    #[error("cannot send the bundle to {store}: {problem}; {remedy}")]
    Failed {
        /// Its URL.
        store: String,
        /// What happened.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// No signed URL can be made.
    #[error(
        "cannot sign a URL for the bundle in {store}: {problem}; pods fetch it by such a URL: use credentials that can sign (see docs/stores.md)"
    )]
    Sign {
        /// Its URL.
        store: String,
        /// Why not.
        problem: String,
    },
    /// The signed URL does not give the bundle.
    #[error("{store} has the bundle, but does not give it by a signed URL: {source}")]
    Unreadable {
        /// Its URL.
        store: String,
        /// What came instead.
        source: super::DownloadError,
    },
    /// It was there, and is not any more.
    #[error("the bundle {place} is not in the store any more; pack and send it again")]
    Gone {
        /// Where it was.
        place: String,
    },
    /// Whoever asked for it does not want it any more; nothing of it is left.
    #[error("the upload was stopped")]
    Stopped,
}
