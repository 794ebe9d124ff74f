//! Delivery of bundles: in a Secret if they are small, otherwise through a folder that all nodes
//! share, or an object store, from which pods download with a signed URL.

mod blocking;
mod connector;
mod deliver;
mod delivered;
mod download;
mod error;
mod folder;
pub(crate) mod for_data;
mod http;
mod journal;
mod listing;
mod objects;
mod options;
mod post;
mod put;
mod reason;
mod refusal;
mod remote;
mod retry;
mod send;
mod signed;
mod store_client;
mod upload;
mod url;
mod waits;

use std::path::PathBuf;

use bytes::Bytes;

pub use deliver::{deliver, describe};
pub use delivered::again;
pub use download::{DownloadError, download};
pub use error::{FORMS, StoreError};
pub use objects::StoreObjects;
pub use options::{DeliverOptions, LONGEST as LONGEST_VALIDITY, Sent, validity};
pub use post::{PostError, check_url, post_json};
pub use put::{PutError, put};
pub use retry::RetryPolicy;
pub use signed::SignedUrl;
pub use url::{Remote, Service};
pub use waits::report_waits;

/// The maximum size of a bundle in a Secret: Kubernetes allows 1 MiB, including the rest of the
/// object.
pub const SECRET_LIMIT: u64 = 960 * 1024;

/// A bundle in a plan: its identity and its delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleInfo {
    /// The sha256 of the archive, in hexadecimal.
    pub sha256: String,
    /// The size of the archive in bytes.
    pub size: u64,
    /// The delivery to the pods.
    pub delivery: Delivery,
}

/// The way in which pods get a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// In a Secret that holds these bytes.
    Secret(Bytes),
    /// In a folder that all nodes share at the same path.
    Folder {
        /// The store's folder.
        root: PathBuf,
    },
    /// From a signed URL, which is stored in the run's Secret.
    Url(SignedUrl),
}

/// A store for bundles that are too large for a Secret, or that must not pass through the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// `file:///path`: a folder that all nodes share.
    Folder(PathBuf),
    /// `s3://`, `gs://` or `az://`: an object store.
    Remote(Remote),
}

/// The path of a bundle within a store.
#[must_use]
pub fn address(sha256: &str) -> String {
    format!("bundles/{sha256}.tar.gz")
}
