//! Validates taints of devices, and tolerations for these taints.

use longshore_model::CauseList;

use super::FieldValue;
use crate::{
    json::Object,
    validate::{field_value::Causes, meta},
};

const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

pub(crate) fn taint_rule(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let selector = spec.get("deviceSelector");
    let [driver, pool, device] = ["driver", "pool", "device"].map(|name| selector.get(name));
    if driver.is_set() {
        crate::validate::storage::driver_name(&driver, causes);
    }
    if pool.is_set() {
        super::pool_name(&pool, causes);
    }
    if device.is_set() {
        causes.label(&device);
    }
    taint(&spec.get("taint"), causes);
}

pub(super) fn taint(taint: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.qualified(&taint.get("key"));
    let (value, effect) = (taint.get("value"), taint.get("effect"));
    meta::label_value(&value.path, value.text(), causes.0);
    match effect.text() {
        "" => causes.required(&effect, ""),
        _ => causes.one_of(&effect, EFFECTS),
    }
}

pub(super) fn toleration(toleration: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let (key, operator) = (toleration.get("key"), toleration.get("operator"));
    let (value, effect) = (toleration.get("value"), toleration.get("effect"));
    if !key.text().is_empty() {
        causes.qualified(&key);
    }
    match operator.text() {
        "Exists" if !value.text().is_empty() => {
            causes.invalid(&value, "must be empty for operator `Exists`");
        }
        "Exists" => {}
        "Equal" => meta::label_value(&value.path, value.text(), causes.0),
        "" => causes.required(&operator, ""),
        _ => causes.not_supported(&operator, &["Equal", "Exists"]),
    }
    if !effect.text().is_empty() {
        causes.one_of(&effect, EFFECTS);
    }
}
