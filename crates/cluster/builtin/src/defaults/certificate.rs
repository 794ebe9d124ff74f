//! Normalizes the status and the approval of a CertificateSigningRequest when
//! they are written.

use jiff::Timestamp;
use longshore_model::time;
use serde_json::Value;

use crate::json::{self, Object};

/// Condition types that only the approval subresource may change.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

fn conditions(object: &Object) -> Vec<Value> {
    let list = json::at(object, "status.conditions");
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn set_conditions(object: &mut Object, conditions: Vec<Value>) {
    let status = json::child(object, "status");
    if conditions.is_empty() {
        status.remove("conditions");
    } else {
        status.insert("conditions".into(), conditions.into());
    }
}

/// Restores the approval conditions, unless the write adds or removes some.
fn keep_decisions(before: &Object, object: &mut Object) {
    let (old, mut new) = (conditions(before), conditions(object));
    for decision in DECISIONS {
        let is_it = |condition: &Value| condition["type"] == decision;
        let known: Vec<&Value> = old.iter().filter(|one| is_it(one)).collect();
        if known.len() == new.iter().filter(|one| is_it(one)).count() {
            let places = new.iter_mut().filter(|one| is_it(one));
            for (place, known) in places.zip(known) {
                *place = known.clone();
            }
        }
    }
    set_conditions(object, new);
}

/// Takes only the conditions from the status in the request.
pub(crate) fn keep_all_but_conditions(before: &Object, object: &mut Object) {
    let sent = conditions(object);
    json::copy(before, object, "status");
    set_conditions(object, sent);
}

/// Sets the missing timestamps of conditions.
pub(crate) fn set_transition_times(before: &Object, object: &mut Object, now: Timestamp) {
    let (old, mut new) = (conditions(before), conditions(object));
    let now = Value::from(time::seconds(now));
    let lacks = |condition: &Value, field: &str| condition[field].is_null();
    for condition in new.iter_mut().filter(|condition| condition.is_object()) {
        if lacks(condition, "lastUpdateTime") {
            condition["lastUpdateTime"] = now.clone();
        }
        if lacks(condition, "lastTransitionTime") {
            let same = |other: &&Value| {
                let fields = ["type", "status"];
                fields.iter().all(|field| other[field] == condition[field])
            };
            let known = old.iter().find(same).map(|one| &one["lastTransitionTime"]);
            let known = known.filter(|time| !time.is_null()).unwrap_or(&now);
            condition["lastTransitionTime"] = known.clone();
        }
    }
    set_conditions(object, new);
}

/// Keeps the decisions of earlier requests, and sets the timestamps of new ones.
pub(crate) fn on_status(before: &Object, object: &mut Object, now: Timestamp) {
    keep_decisions(before, object);
    set_transition_times(before, object, now);
}
