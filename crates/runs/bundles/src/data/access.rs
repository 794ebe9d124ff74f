//! The list of signed URLs with which a pod fetches data.

use std::{
    collections::BTreeMap,
    fmt,
    io::{Read as _, Write as _},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{DataError, Manifest};
use crate::{bundle::hexadecimal, store::SignedUrl};

/// The maximum size of a compressed list in the Secret of a run, in bytes.
pub const INLINE_LIMIT: usize = 32 * 1024;
/// The maximum size of a list in bytes.
const LARGEST: u64 = 512 << 20;

/// The manifest of data, and the URLs of the contents.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessList {
    /// The text of the manifest.
    pub manifest: String,
    /// The URLs, by content.
    pub(super) urls: BTreeMap<String, Access>,
}

/// The access to a content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    pub(super) url: SignedUrl,
    /// The ETag of an object whose sha256 is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
}

impl fmt::Debug for AccessList {
    /// Omits the URLs, which grant access.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessList({} URLs)", self.urls.len())
    }
}

/// A compressed list.
pub struct Packed {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
}

impl AccessList {
    pub(super) fn pack(&self) -> Result<Packed, DataError> {
        let invalid = |problem: String| DataError::Manifest {
            place: "for the pods".to_owned(),
            problem,
        };
        let text = serde_json::to_vec(self).map_err(|error| invalid(error.to_string()))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&text).and_then(|()| encoder.finish());
        let bytes = packed.map_err(|error| invalid(error.to_string()))?;
        Ok(Packed {
            sha256: hexadecimal(&Sha256::digest(&bytes)),
            bytes,
        })
    }

    /// Reads a compressed list, and checks that its manifest has this sha256.
    ///
    /// # Errors
    /// [`DataError::Manifest`].
    pub fn unpack(bytes: &[u8], sha256: &str) -> Result<(Self, Manifest), DataError> {
        let invalid = |problem: String| DataError::Manifest {
            place: sha256.to_owned(),
            problem,
        };
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(bytes).take(LARGEST.saturating_add(1));
        let read = decoder.read_to_end(&mut text);
        read.map_err(|error| invalid(error.to_string()))?;
        if text.len() as u64 > LARGEST {
            return Err(invalid(format!("it is larger than {LARGEST} bytes")));
        }
        let list: Self =
            serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        let found = Manifest::sha256(&list.manifest);
        if found != sha256 {
            return Err(invalid(format!("its sha256 is {found}")));
        }
        let manifest = Manifest::parse(&list.manifest).map_err(invalid)?;
        Ok((list, manifest))
    }
}
