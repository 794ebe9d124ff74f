//! Objects of buckets as contents, and the paths of data in a store. Pure.

use object_store::{ObjectMeta, path::Path};
use sha2::{Digest as _, Sha256};

use super::check::OBJECT;
use crate::{bundle::hexadecimal, store::Remote};

/// The identity of an object's content, because its sha256 is unknown before the download.
pub(super) fn content(store: &str, object: &ObjectMeta) -> String {
    let etag = object.e_tag.as_deref().unwrap_or_default();
    let time = match etag {
        "" => object.last_modified.to_rfc3339(),
        _ => String::new(),
    };
    let key = object.location.as_ref();
    let size = object.size.to_string();
    let mut hash = Sha256::new();
    for text in [store, key, etag, &time, &size] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    format!("{OBJECT}{}", hexadecimal(&hash.finalize()))
}

/// The path of a content in a store.
pub(super) fn path(remote: &Remote, content: &str) -> Path {
    let start = content.get(..2).unwrap_or_default();
    Path::from(remote.within(&format!("data/files/{start}/{content}")))
}

/// The folder of all contents in a store.
pub(super) fn folder(remote: &Remote) -> Path {
    Path::from(remote.within("data/files"))
}

/// The path of a list in a store.
pub(super) fn list_path(remote: &Remote, sha256: &str) -> Path {
    Path::from(remote.within(&format!("data/lists/{sha256}.json.gz")))
}
