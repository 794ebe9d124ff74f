//! The objects of a bucket below a prefix, as data.

use futures::{StreamExt as _, future::BoxFuture};
use object_store::path::Path;

use super::{DataError, Manifest, check::is_plain, manifest::DataFile, object};
use crate::store::{
    Remote,
    for_data::{Effort, not_silent},
};

/// The maximum number of objects.
pub const MOST_OBJECTS: usize = 100_000;
/// The maximum number of listed objects that are not below the prefix.
const MOST_OTHERS: usize = 1_000;

/// The objects of a bucket at the time of the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketData {
    /// The objects as files.
    pub manifest: Manifest,
    /// The sha256 of the manifest's text: the identity of the data.
    pub sha256: String,
    /// The bucket and the prefix.
    pub remote: Remote,
    pub(super) objects: Vec<BucketObject>,
}

/// An object of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketObject {
    pub(super) key: Path,
    pub(super) content: String,
    pub(super) etag: Option<String>,
}

/// Lists the objects below a prefix, with the credentials of the environment.
///
/// # Errors
/// [`DataError`] contains the bucket, the problem and the remedy.
pub fn list_bucket<'a>(
    remote: &'a Remote,
    settings: &'a [(String, String)],
) -> BoxFuture<'a, Result<BucketData, DataError>> {
    Box::pin(async move {
        let place = remote.to_string();
        let opened = remote.open(Effort::Little, settings)?;
        let prefix = remote.prefix();
        let prefix = (!prefix.is_empty()).then(|| Path::from(prefix));
        let listed = not_silent(opened.objects.list(prefix.as_ref()));
        let mut listed = std::pin::pin!(listed);
        let (mut files, mut objects) = (Vec::new(), Vec::new());
        let mut others = 0;
        while let Some(found) = listed.next().await {
            let found = found.map_err(|error| remote.unlisted(&error))?;
            let key = found.location.as_ref();
            let path = match &prefix {
                Some(prefix) => {
                    let below = key.strip_prefix(prefix.as_ref());
                    below.and_then(|below| below.strip_prefix('/'))
                }
                None => Some(key),
            };
            // Skips an object whose key is the prefix itself: some programs create it for a folder.
            let Some(path) = path.filter(|path| !path.is_empty()) else {
                others += 1;
                if others > MOST_OTHERS {
                    return Err(DataError::Object {
                        place,
                        key: key.to_owned(),
                        problem: "the store lists objects that were not requested".to_owned(),
                    });
                }
                continue;
            };
            if !is_plain(path) {
                return Err(DataError::Object {
                    place,
                    key: key.to_owned(),
                    problem: "its key is not a path, has control characters, or is too long"
                        .to_owned(),
                });
            }
            if files.len() >= MOST_OBJECTS {
                return Err(DataError::TooMany {
                    place,
                    what: "objects",
                    most: MOST_OBJECTS,
                });
            }
            let content = object::content(&opened.identity, &found);
            files.push(DataFile {
                path: path.to_owned(),
                size: found.size,
                content: content.clone(),
                executable: false,
            });
            objects.push(BucketObject {
                key: found.location,
                content,
                etag: found.e_tag,
            });
        }
        if files.is_empty() {
            return Err(DataError::Empty { place });
        }
        let manifest = Manifest::new(files, Vec::new(), Vec::new());
        let text = manifest.to_text();
        // Fails if the name of an object is also the name of a folder.
        Manifest::parse(&text).map_err(|problem| DataError::Manifest { place, problem })?;
        Ok(BucketData {
            sha256: Manifest::sha256(&text),
            manifest,
            remote: remote.clone(),
            objects,
        })
    })
}
