//! Snapshots: one version of an object as JSON text, with an index of its most used parts. A
//! part is parsed when it is read.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use longshore_model::ObjectMeta;
use serde::de::DeserializeOwned;

use crate::unreadable::Unreadable;
use crate::{
    index::{self, Index},
    json::{self, Scanner},
    managed_fields::without_managed_fields,
};

/// A version of an object.
pub struct Snapshot {
    /// The JSON text, usually a slice of a response.
    bytes: Bytes,
    index: Index,
    meta: OnceLock<Box<ObjectMeta>>,
    /// The reason why the text cannot be read. The index is empty then.
    error: Option<Box<Unreadable>>,
}

impl Snapshot {
    pub(crate) fn new((bytes, index): (Bytes, Index)) -> Self {
        Self {
            bytes,
            index,
            meta: OnceLock::new(),
            error: None,
        }
    }

    /// An object that cannot be read, with the error that each access returns.
    #[must_use]
    pub fn unreadable(bytes: Bytes, error: Unreadable) -> Self {
        Self {
            error: Some(Box::new(error)),
            ..Self::new((bytes, Index::default()))
        }
    }

    /// Reads an object and checks its whole text. `what` is its name in errors.
    ///
    /// # Errors
    /// The text is not a JSON object, or a field of the index is malformed.
    pub fn parse(body: &Bytes, what: &str) -> Result<Self, Unreadable> {
        index::object(body, what).map(Self::new)
    }

    /// Reads an object that is part of a response. Nested values are checked when they are
    /// read. `what` names the object in errors.
    ///
    /// # Errors
    /// The same as [`Snapshot::parse`].
    pub fn parse_part(body: &Bytes, what: &str) -> Result<Self, Unreadable> {
        index::part(body, what).map(Self::new)
    }

    /// Copies the snapshot and its text, so that it does not keep the response in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self {
            bytes: Bytes::copy_from_slice(&self.bytes),
            index: self.index.clone(),
            meta: OnceLock::new(),
            error: self.error.clone(),
        }
    }

    /// Like [`Snapshot::detached`], but without `managedFields`. For snapshots that are kept.
    #[must_use]
    pub fn compact(&self) -> Arc<Self> {
        if self.error.is_some() {
            return Arc::new(self.detached());
        }
        let bytes = without_managed_fields(&self.bytes, &self.index);
        // Cannot fail, because the original text was read before.
        let compact = Self::parse_part(&bytes, "an item");
        Arc::new(compact.unwrap_or_else(|error| Self::unreadable(bytes, error)))
    }

    /// Checks that the text could be read.
    ///
    /// # Errors
    /// The error of [`Snapshot::unreadable`].
    pub fn check_readable(&self) -> Result<(), Unreadable> {
        match &self.error {
            None => Ok(()),
            Some(error) => Err((**error).clone()),
        }
    }

    /// Checks that all of the text is valid JSON. `described` names the object in errors.
    ///
    /// # Errors
    /// The problem and its position.
    pub fn check(&self, described: impl Fn() -> String) -> Result<(), Unreadable> {
        self.check_readable()?;
        std::str::from_utf8(&self.bytes).map_err(|error| Unreadable::new(described(), error))?;
        let mut scanner = Scanner::new(&self.bytes);
        scanner
            .value()
            .map(drop)
            .map_err(|error| Unreadable::new(described(), error))
    }

    /// The JSON text.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The name; empty if the text cannot be read.
    #[must_use]
    pub fn name(&self) -> &str {
        self.index.name.get(&self.bytes).unwrap_or_default()
    }

    /// The namespace of a namespaced object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let namespace = self.index.namespace.get(&self.bytes);
        namespace.filter(|text| !text.is_empty())
    }

    /// The UID; empty if it is absent.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.index.uid.get(&self.bytes).unwrap_or_default()
    }

    /// The resource version; empty if it is absent.
    #[must_use]
    pub fn version(&self) -> &str {
        self.index.version.get(&self.bytes).unwrap_or_default()
    }

    /// The metadata, parsed at the first call. If they are invalid, only their valid parts.
    pub fn meta(&self, described: impl Fn() -> String) -> &ObjectMeta {
        self.meta.get_or_init(|| {
            let meta = self.checked_meta(described).unwrap_or_else(|error| {
                tracing::warn!(%error, "invalid parts of the metadata are ignored");
                self.lenient_meta()
            });
            Box::new(meta)
        })
    }

    /// Parses the metadata.
    ///
    /// # Errors
    /// An error if a part of the metadata does not conform to the API.
    pub fn checked_meta(&self, described: impl Fn() -> String) -> Result<ObjectMeta, Unreadable> {
        self.check_readable()?;
        let text = self.index.metadata.get(&self.bytes).unwrap_or(b"{}");
        serde_json::from_slice(text)
            .map_err(|error| Unreadable::new(format!("the metadata of {}", described()), error))
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

    /// Returns the JSON text of the labels; empty if the object has no labels.
    #[must_use]
    pub fn labels_text(&self) -> &[u8] {
        let text = self.part(&["metadata", "labels"]);
        text.ok().flatten().unwrap_or_default()
    }

    /// Parses the labels at each call. Invalid labels are ignored.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        serde_json::from_slice(self.labels_text()).unwrap_or_default()
    }

    /// Returns the text of the value at `path`, `None` if it is absent or `null`. If a key
    /// occurs twice, which API servers do not send, the first one is used.
    ///
    /// # Errors
    /// The text before the value is not valid JSON.
    pub fn part(&self, path: &[&str]) -> Result<Option<&[u8]>, json::SyntaxError> {
        let span = match path.first() {
            Some(&"metadata") => self.index.metadata,
            Some(&"spec") => self.index.spec,
            Some(&"status") => self.index.status,
            _ => return json::find(&self.bytes, path),
        };
        span.get(&self.bytes)
            .map_or(Ok(None), |part| json::find(part, &path[1..]))
    }
}
