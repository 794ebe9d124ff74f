//! Decodes stored objects. Opening a store decodes all of its objects, so only the properties that
//! reads need are parsed and the rest is skipped.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Object, key, shared};
use longshore_builtin::KindRules;

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(borrow)]
    resource_version: &'a RawValue,
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

impl Object {
    /// Decodes an object that `encode` wrote.
    pub(crate) fn decode(bytes: &[u8], rules: &KindRules) -> Result<Self, String> {
        let Stored { metadata } =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let version = metadata.resource_version;
        let revision = version.get().trim_matches('"').parse();
        let within = range_of(bytes, version);
        Ok(Self {
            bytes: Bytes::copy_from_slice(bytes),
            key: key(Some(&metadata.namespace), &metadata.name),
            uid: metadata.uid.into(),
            revision: revision.map_err(|_| "metadata.resourceVersion is no version")?,
            labels: shared(metadata.labels),
            fields: rules.extract(&rules.decode_selectable(bytes)?),
            version_at: within.start + 1..within.end - 1,
            managed_at: metadata
                .managed_fields
                .map_or(0..0, |managed| range_of(bytes, managed)),
        })
    }
}

/// Returns true if a stored object has a deletion timestamp.
pub(super) fn is_being_deleted(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Stored {
        metadata: DeletionMetadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DeletionMetadata {
        #[serde(default)]
        deletion_timestamp: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Stored>(bytes)
        .is_ok_and(|stored| stored.metadata.deletion_timestamp.is_some())
}

/// The position of a part within the text.
fn range_of(text: &[u8], part: &RawValue) -> Range<u32> {
    let start = part.get().as_ptr().addr() - text.as_ptr().addr();
    start as u32..(start + part.get().len()) as u32
}
