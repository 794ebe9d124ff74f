//! The source from which a pod gets an [`AccessList`](super::AccessList).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::SignedUrl;

/// The source from which a pod gets the list of its data and their signed URLs. Secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodList {
    /// The list itself, compressed, in base64.
    Inline(String),
    /// An object in the store.
    #[serde(rename_all = "camelCase")]
    Object {
        /// The signed URL.
        url: SignedUrl,
        /// The size in bytes.
        size: u64,
        /// The sha256 in hexadecimal.
        sha256: String,
    },
    /// The plan is the output of a dry run.
    NotSent,
}

impl fmt::Debug for PodList {
    /// Omits the URLs, which grant access.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline(_) => f.write_str("Inline(…)"),
            Self::Object { url, .. } => write!(f, "Object({url})"),
            Self::NotSent => f.write_str("NotSent"),
        }
    }
}
