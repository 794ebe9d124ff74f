//! The fields of a pod that the controller reads.

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Pod};
use longshore_model::meta::OwnerReference;
use serde::Deserialize;

use crate::key::Key;

/// The fields of a pod that the controller reads.
#[derive(Debug, Clone)]
pub(super) struct PodFacts {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) ready: bool,
    /// True if the pod is being deleted.
    pub(super) deleting: bool,
    pub(super) owner: Option<OwnerReference>,
    /// The time since which the condition DisruptionTarget states that the pod will be deleted.
    /// `None` if the pod lacks the condition, has ended, or is terminated by its node.
    pub(super) disrupted_since: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    phase: Option<String>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
}

impl PodFacts {
    /// Reads a pod.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Pod>) -> Result<Self, Error> {
        let status = item.typed::<Raw>()?.status;
        let conditions = status.conditions.unwrap_or_default();
        let is_true = |kind: &str| {
            let mut conditions = conditions.iter();
            conditions.find(|one| one.r#type == kind && one.status == "True")
        };
        let has_ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let disrupted = is_true("DisruptionTarget")
            .filter(|one| !has_ended && one.reason.as_deref() != Some("TerminationByKubelet"));
        let meta = item.meta();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            ready: is_true("Ready").is_some(),
            deleting: meta.deletion_timestamp.is_some(),
            owner: meta.controller().cloned(),
            disrupted_since: disrupted.and_then(|one| one.last_transition_time),
        })
    }
}
