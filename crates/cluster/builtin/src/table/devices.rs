//! Table rows of the kinds of resource.k8s.io.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    duration, name, text, time_at,
};

#[rustfmt::skip]
pub(crate) const CLAIM: &[Column] = &[
    NAME,
    column("State", "string", "", 0, "Whether devices are allocated and reserved."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SLICE: &[Column] = &[
    NAME,
    column("Node", "string", "", 0, "The node with the devices."),
    column("Driver", "string", "", 0, "The driver of the devices."),
    column("Pool", "string", "", 0, "The pool of the devices."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const TAINT_RULE: &[Column] = &[
    NAME,
    column("Key", "string", "", 0, "The key of the taint."),
    column("Value", "string", "", 0, "The value of the taint."),
    column("Effect", "string", "", 0, "The effect on pods that do not tolerate it."),
    column("TimeAdded", "string", "", 0, "When it was added."),
    AGE,
];

pub(crate) fn claim(object: &Value, now: Timestamp) -> Vec<Value> {
    let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
    let is_allocated = !object["status"]["allocation"].is_null();
    let reserved = object["status"]["reservedFor"].as_array();
    let is_reserved = is_allocated && reserved.is_some_and(|list| !list.is_empty());
    let states = [
        (is_deleted, "deleted"),
        (!is_deleted && !is_allocated, "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states = states.iter().filter(|(holds, _)| *holds);
    let states: Vec<&str> = states.map(|(_, state)| *state).collect();
    vec![name(object), states.join(",").into(), age_cell(object, now)]
}

pub(crate) fn slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let fields = ["/spec/nodeName", "/spec/driver", "/spec/pool/name"];
    let mut cells = vec![name(object)];
    cells.extend(fields.map(|field| text(object, field).into()));
    cells.push(age_cell(object, now));
    cells
}

pub(crate) fn taint_rule(object: &Value, now: Timestamp) -> Vec<Value> {
    let fields = ["key", "value", "effect"];
    let mut cells = vec![name(object)];
    cells.extend(fields.map(|field| text(object, &format!("/spec/taint/{field}")).into()));
    let added = time_at(object, "/spec/taint/timeAdded");
    let added = added.map(|added| duration::age(Some(added), now));
    cells.push(added.unwrap_or_default().into());
    cells.push(age_cell(object, now));
    cells
}
