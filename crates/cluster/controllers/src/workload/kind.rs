//! The fields that StatefulSets and DaemonSets share, and the names of both kinds.

use std::collections::BTreeMap;

use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{events::Subject, key::Key, pod_facts::PodFacts};

/// The label of a pod that contains its revision.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// The names of one of the kinds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The kind. Its API version is `apps/v1`.
    pub(crate) kind: &'static str,
    /// The controller's name in the log.
    pub(crate) what: &'static str,
    /// The controller's name in events.
    pub(crate) component: &'static str,
    /// True if revisions that the selector no longer matches are released.
    pub(crate) releases_revisions: bool,
}

impl Kind {
    /// The API version of both kinds.
    pub(crate) const API_VERSION: &'static str = "apps/v1";

    /// Returns the reference of an object that a workload of this kind owns.
    pub(crate) fn reference(&self, meta: &Meta) -> Value {
        json!({
            "apiVersion": Self::API_VERSION, "kind": self.kind,
            "name": meta.key.name, "uid": meta.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Returns the subject of an event about a workload of this kind.
    pub(crate) fn subject(&self, meta: &Meta) -> Subject {
        Subject {
            api_version: Self::API_VERSION.into(),
            kind: self.kind.into(),
            namespace: meta.key.namespace.clone(),
            name: meta.key.name.clone(),
            uid: meta.uid.clone(),
        }
    }
}

/// The identity of a workload and the selector of its pods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meta {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// Generation.
    pub(crate) generation: i64,
    /// True if the workload is being deleted.
    pub(crate) deleting: bool,
    /// Annotations.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The selector of the workload's pods and revisions.
    pub(crate) selector: LabelSelector,
    /// The labels that the selector lists.
    pub(crate) match_labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Raw {
    spec: RawSpec,
}

#[derive(Deserialize)]
struct RawSpec {
    selector: StructuredSelector,
}

impl Meta {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let selector = item.typed::<Raw>()?.spec.selector;
        let match_labels = selector.match_labels.clone();
        let selector = LabelSelector::try_from(selector);
        let meta = item.meta();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            generation: meta.generation.unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
            annotations: meta.annotations.clone(),
            selector: selector.map_err(|error| Error::Invalid(error.to_string()))?,
            match_labels,
        })
    }

    /// Returns true if the selector matches labels. An empty selector matches nothing.
    pub(crate) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.selector.is_everything() && self.selector.matches(labels)
    }
}

/// A StatefulSet or a DaemonSet.
pub(crate) trait Workload: Sized {
    /// The kind.
    const KIND: Kind;

    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    fn of(item: &Item<Any>) -> Result<Self, Error>;

    /// Returns the identity of the workload.
    fn meta(&self) -> &Meta;

    /// Returns the part of a revision's data that determines its hash.
    fn hashed(data: &Value) -> &Value;

    /// Returns true if a pod with this name can belong to the workload.
    fn accepts_name(&self, pod: &str) -> bool;
}

impl PodFacts {
    /// Returns the revision in the pod's label.
    pub(crate) fn revision(&self) -> &str {
        let revision = self.labels.get(REVISION_LABEL);
        revision.map(String::as_str).unwrap_or_default()
    }
}
