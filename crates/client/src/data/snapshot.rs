//! One version of one object: its text and the places of its most wanted
//! parts. A part is parsed when it is read.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use longshore_model::ObjectMeta;
use serde::de::DeserializeOwned;

use super::{
    index::{self, Index},
    json::{self, Scanner},
    managed_fields::without_managed_fields,
};
use crate::error::{Error, Result};

/// The text is a slice of the answer it came in.
pub(crate) struct Snapshot {
    bytes: Bytes,
    index: Index,
    meta: OnceLock<Box<ObjectMeta>>,
    /// Why the index could not be made; it is empty then.
    fault: Option<Box<Error>>,
}

impl Snapshot {
    pub(super) fn new((bytes, index): (Bytes, Index)) -> Self {
        Self {
            bytes,
            index,
            meta: OnceLock::new(),
            fault: None,
        }
    }

    /// An object that cannot be read, and why.
    pub(crate) fn broken(bytes: Bytes, fault: Error) -> Self {
        Self {
            fault: Some(Box::new(fault)),
            ..Self::new((bytes, Index::default()))
        }
    }

    /// An answer that is one object, checked whole.
    pub(crate) fn whole(body: &Bytes, what: &str) -> Result<Self> {
        index::object(body, what).map(Self::new)
    }

    /// One object of many, checked as far as its metadata.
    pub(crate) fn part_of(body: &Bytes, what: &str) -> Result<Self> {
        index::part(body, what).map(Self::new)
    }

    /// The same with a copy of the text.
    pub(crate) fn own(&self) -> Self {
        Self {
            bytes: Bytes::copy_from_slice(&self.bytes),
            index: self.index.clone(),
            meta: OnceLock::new(),
            fault: self.fault.clone(),
        }
    }

    /// Its own copy of the text, without `managedFields`: for keeping.
    pub(crate) fn compact(&self) -> Arc<Self> {
        if self.fault.is_some() {
            return Arc::new(self.own());
        }
        let bytes = without_managed_fields(&self.bytes, &self.index);
        // What could be read once can be read again.
        let compact = Self::part_of(&bytes, "an item");
        Arc::new(compact.unwrap_or_else(|fault| Self::broken(bytes, fault)))
    }

    /// That it could be read at all.
    pub(crate) fn intact(&self) -> Result<()> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err((**fault).clone()),
        }
    }

    /// That all of it is sound JSON.
    pub(crate) fn check(&self, described: impl Fn() -> String) -> Result<()> {
        self.intact()?;
        std::str::from_utf8(&self.bytes).map_err(|error| Error::decode(described(), error))?;
        let mut scanner = Scanner::new(&self.bytes);
        scanner
            .value()
            .map(drop)
            .map_err(|fault| Error::decode(described(), fault))
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn name(&self) -> &str {
        self.index.name.get(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        let namespace = self.index.namespace.get(&self.bytes);
        namespace.filter(|text| !text.is_empty())
    }

    pub(crate) fn uid(&self) -> &str {
        self.index.uid.get(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn version(&self) -> &str {
        self.index.version.get(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn meta(&self, described: impl Fn() -> String) -> &ObjectMeta {
        self.meta.get_or_init(|| {
            let meta = self.checked_meta(described).unwrap_or_else(|error| {
                tracing::warn!(%error, "metadata are read in part");
                self.lenient_meta()
            });
            Box::new(meta)
        })
    }

    pub(crate) fn checked_meta(&self, described: impl Fn() -> String) -> Result<ObjectMeta> {
        self.intact()?;
        let text = self.index.metadata.get(&self.bytes).unwrap_or(b"{}");
        serde_json::from_slice(text)
            .map_err(|error| Error::decode(format!("the metadata of {}", described()), error))
    }

    fn lenient_meta(&self) -> ObjectMeta {
        ObjectMeta {
            name: self.name().to_owned(),
            namespace: self.namespace().map(str::to_owned),
            uid: self.uid().to_owned(),
            resource_version: self.version().to_owned(),
            labels: self.lenient(&["metadata", "labels"]),
            annotations: self.lenient(&["metadata", "annotations"]),
            ..ObjectMeta::default()
        }
    }

    fn lenient<T: DeserializeOwned + Default>(&self, path: &[&str]) -> T {
        let text = self.part(path).ok().flatten();
        text.and_then(|text| serde_json::from_slice(text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn labels_text(&self) -> &[u8] {
        let text = self.part(&["metadata", "labels"]);
        text.ok().flatten().unwrap_or_default()
    }

    /// The labels, parsed anew; none when they are no texts.
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        serde_json::from_slice(self.labels_text()).unwrap_or_default()
    }

    /// The text of a part; `None` when it is absent or `null`. Of a key that
    /// is there twice, which no API server sends, the first counts.
    pub(crate) fn part(&self, path: &[&str]) -> Result<Option<&[u8]>, json::Fault> {
        let place = match path.first() {
            Some(&"metadata") => self.index.metadata,
            Some(&"spec") => self.index.spec,
            Some(&"status") => self.index.status,
            _ => return json::find(&self.bytes, path),
        };
        place
            .get(&self.bytes)
            .map_or(Ok(None), |part| json::find(part, &path[1..]))
    }
}
