//! The conditions of a Deployment: Available, Progressing, ReplicaFailure.

use jiff::Timestamp;
use longshore_model::time;
use serde::{Deserialize, Serialize};

pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(crate) const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
pub(crate) const FOUND_NEW_SET: &str = "FoundNewReplicaSet";
pub(crate) const SET_UPDATED: &str = "ReplicaSetUpdated";
pub(crate) const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
pub(crate) const CREATE_ERROR: &str = "ReplicaSetCreateError";
pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
pub(crate) const PAUSED: &str = "DeploymentPaused";
pub(crate) const RESUMED: &str = "DeploymentResumed";

/// A condition. Conditions of ReplicaSets have no `lastUpdateTime`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `True`, `False`, `Unknown`.
    pub(crate) status: String,
    /// The time of the last update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_update_time: Option<String>,
    /// The time at which the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<String>,
    /// The reason in CamelCase.
    pub(crate) reason: String,
    /// The human-readable message.
    pub(crate) message: String,
}

impl Condition {
    /// Creates a condition that starts now.
    pub(crate) fn new(
        kind: &str,
        status: &str,
        reason: &str,
        message: String,
        now: Timestamp,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            last_update_time: Some(time::seconds(now)),
            last_transition_time: Some(time::seconds(now)),
            reason: reason.to_owned(),
            message,
        }
    }

    /// Returns the time of the last update.
    pub(crate) fn updated(&self) -> Option<Timestamp> {
        self.last_update_time.as_deref()?.parse().ok()
    }
}

/// Returns the condition of a type.
pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Removes the condition of a type.
pub(crate) fn remove(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|condition| condition.kind != kind);
}

/// Sets a condition. If status and reason are the same, nothing changes. If only
/// the status is the same, the transition time is kept.
pub(crate) fn set(conditions: &mut Vec<Condition>, mut new: Condition) {
    if let Some(known) = find(conditions, &new.kind)
        && known.status == new.status
    {
        if known.reason == new.reason {
            return;
        }
        new.last_transition_time
            .clone_from(&known.last_transition_time);
    }
    remove(conditions, &new.kind);
    conditions.push(new);
}
