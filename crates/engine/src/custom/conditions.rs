//! Conditions in the status of a CustomResourceDefinition.

use jiff::Timestamp;
use longshore_model::time;
use serde_json::{Value, json};

use crate::json;

/// Whether a condition of a definition is `True`.
pub(crate) fn is_condition_true(definition: &json::Object, condition: &str) -> bool {
    json::at(definition, "status.conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|one| one["type"] == condition && one["status"] == "True")
}

/// Sets a condition. The transition time changes only if the status changes.
pub(crate) fn set_condition(
    definition: &mut json::Object,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let status = if status { "True" } else { "False" };
    let conditions = json::child(definition, "status")
        .entry("conditions")
        .or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let mut new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time::seconds(now),
    });
    match conditions.iter_mut().find(|old| old["type"] == kind) {
        Some(old) => {
            if old["status"] == status {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}
