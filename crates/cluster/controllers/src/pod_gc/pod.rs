//! The fields of a pod that the collector reads.

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Pod};
use serde::Deserialize;

use crate::key::Key;

/// The fields of a pod that the collector reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodFacts {
    pub(super) key: Key,
    pub(super) uid: String,
    /// The resourceVersion.
    pub(super) version: String,
    /// The pod's node; empty if the pod is not scheduled.
    pub(super) node: String,
    /// True if the pod has succeeded or failed.
    pub(super) ended: bool,
    /// True if the node evicted the pod.
    pub(super) evicted: bool,
    /// True if the pod is being deleted.
    pub(super) deleting: bool,
    pub(super) created: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    phase: Option<String>,
    reason: Option<String>,
}

impl PodFacts {
    /// Reads a pod.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Pod>) -> Result<Self, Error> {
        let Raw { spec, status } = item.typed()?;
        let meta = item.meta();
        let phase = status.phase.as_deref();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            node: spec.node_name.unwrap_or_default(),
            ended: matches!(phase, Some("Succeeded" | "Failed")),
            evicted: phase == Some("Failed") && status.reason.as_deref() == Some("Evicted"),
            deleting: meta.deletion_timestamp.is_some(),
            created: meta.creation_timestamp,
        })
    }
}
