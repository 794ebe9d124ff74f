//! The status of a PodDisruptionBudget. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_model::time;
use serde::{Deserialize, Serialize};

/// The status of a PodDisruptionBudget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) current_healthy: i32,
    pub(super) desired_healthy: i32,
    pub(super) disruptions_allowed: i32,
    pub(super) expected_pods: i32,
    pub(super) observed_generation: i64,
    /// The evicted pods that have not been deleted, with the times of the evictions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disrupted_pods: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conditions: Option<Vec<Condition>>,
}

/// A condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    pub(super) observed_generation: Option<i64>,
    pub(super) last_transition_time: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// Replaces the condition of the same type. The transition time changes only with the status.
pub(super) fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition, now: Timestamp) {
    new.last_transition_time = time::seconds(now);
    match conditions.iter_mut().find(|one| one.r#type == new.r#type) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time
                    .clone_from(&old.last_transition_time);
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}
