//! The fields of Deployments and ReplicaSets that the controller reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{Error, Item, LabelSelector, kinds::Any};
use longshore_model::selector::StructuredSelector;
use serde::Deserialize;
use serde_json::Value;

use super::{bounds::Strategy, condition::Condition, status::Status};
use crate::key::Key;

/// A Deployment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deployment {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// Generation.
    pub(crate) generation: i64,
    /// True if the Deployment is being deleted.
    pub(crate) deleting: bool,
    /// Annotations.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The selector of the Deployment's ReplicaSets and pods.
    pub(crate) selector: LabelSelector,
    /// The desired state.
    pub(crate) spec: Spec,
    /// The stored status.
    pub(crate) status: Status,
}

/// The spec of a Deployment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    /// The desired number of pods.
    #[serde(default = "one")]
    pub(crate) replicas: i64,
    /// The rollout strategy.
    #[serde(default)]
    pub(crate) strategy: Strategy,
    /// True if rollouts are paused.
    #[serde(default)]
    pub(crate) paused: bool,
    /// The time in seconds for which a pod must be ready before it counts as available.
    #[serde(default)]
    pub(crate) min_ready_seconds: i64,
    /// The progress deadline in seconds.
    #[serde(default)]
    pub(crate) progress_deadline_seconds: Option<i64>,
    /// The number of old ReplicaSets to keep.
    #[serde(default)]
    pub(crate) revision_history_limit: Option<i64>,
    /// The selector, as stored in the object.
    pub(crate) selector: Value,
    /// The pod template.
    pub(crate) template: Value,
}

fn one() -> i64 {
    1
}

const NO_LIMIT: i64 = i32::MAX as i64;

impl Spec {
    /// Returns the progress deadline, if there is one.
    pub(crate) fn deadline(&self) -> Option<i64> {
        self.progress_deadline_seconds
            .filter(|seconds| *seconds != NO_LIMIT)
    }

    /// Returns the number of old ReplicaSets to keep, if it is limited.
    pub(crate) fn history(&self) -> Option<usize> {
        let limit = self.revision_history_limit;
        let limit = limit.filter(|limit| *limit != NO_LIMIT)?;
        usize::try_from(limit).ok()
    }

    /// Returns the maximum number of pods.
    pub(crate) fn most(&self) -> i64 {
        self.replicas + self.strategy.max_surge(self.replicas)
    }

    /// Returns the minimum number of available pods during a rollout.
    pub(crate) fn fewest(&self) -> i64 {
        self.replicas - self.strategy.max_unavailable(self.replicas)
    }
}

#[derive(Deserialize)]
struct RawDeployment {
    spec: Spec,
    #[serde(default)]
    status: Option<Status>,
}

impl Deployment {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: RawDeployment = item.typed()?;
        let invalid = |problem: String| Error::Invalid(problem);
        let selector: StructuredSelector = serde_json::from_value(raw.spec.selector.clone())
            .map_err(|error| invalid(error.to_string()))?;
        let selector = LabelSelector::try_from(selector);
        let meta = item.meta();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            generation: meta.generation.unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
            annotations: meta.annotations.clone(),
            selector: selector.map_err(|error| invalid(error.to_string()))?,
            spec: raw.spec,
            status: raw.status.unwrap_or_default(),
        })
    }
}

/// A ReplicaSet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplicaSet {
    /// Namespace and name.
    pub(crate) key: Key,
    /// Uid.
    pub(crate) uid: String,
    /// resourceVersion.
    pub(crate) version: String,
    /// Generation.
    pub(crate) generation: i64,
    /// True if the ReplicaSet is being deleted.
    pub(crate) deleting: bool,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// The name and UID of the controller.
    pub(crate) owner: Option<(String, String)>,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Annotations.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The desired number of pods.
    pub(crate) replicas: i64,
    /// The time in seconds for which a pod must be ready before it counts as available.
    pub(crate) min_ready_seconds: i64,
    /// The pod template.
    pub(crate) template: Value,
    /// The stored status.
    pub(crate) counts: Counts,
}

/// The status of a ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Counts {
    /// The number of pods.
    pub(crate) replicas: i64,
    /// The number of ready pods.
    pub(crate) ready_replicas: i64,
    /// The number of available pods.
    pub(crate) available_replicas: i64,
    /// The number of pods in deletion.
    pub(crate) terminating_replicas: Option<i64>,
    /// The observed generation.
    pub(crate) observed_generation: i64,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct RawReplicaSet {
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: Option<Counts>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    replicas: Option<i64>,
    min_ready_seconds: i64,
    template: Value,
}

impl ReplicaSet {
    /// Reads the object.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let raw: RawReplicaSet = item.typed()?;
        let meta = item.meta();
        let owner = meta.controller();
        Ok(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            version: item.version().to_owned(),
            generation: meta.generation.unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
            created: meta.creation_timestamp,
            owner: owner.map(|owner| (owner.name.clone(), owner.uid.clone())),
            labels: meta.labels.clone(),
            annotations: meta.annotations.clone(),
            replicas: raw.spec.replicas.unwrap_or(1),
            min_ready_seconds: raw.spec.min_ready_seconds,
            template: raw.spec.template,
            counts: raw.status.unwrap_or_default(),
        })
    }

    /// Returns true if the object with this UID is the controller.
    pub(crate) fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|(_, owner)| owner == uid)
    }
}
