//! Conditions in the status of a CustomResourceDefinition.

use jiff::Timestamp;
use longshore_builtin::json;
use longshore_model::time;
use serde_json::json;

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
