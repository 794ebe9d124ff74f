//! Table rows of roles, bindings, quotas, disruption budgets and priority
//! classes.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell, boolean,
    columns::{AGE, NAME, column},
    joined, list, name, text,
};

/// Columns of kinds that only show their creation.
#[rustfmt::skip]
pub(crate) const CREATED: &[Column] = &[
    NAME,
    column("Created At", "date", "", 0, "When the object was made."),
];

#[rustfmt::skip]
pub(crate) const BINDING: &[Column] = &[
    NAME,
    column("Role", "string", "", 0, "The role that is given."),
    AGE,
    column("Users", "string", "", 1, "Users it is given to."),
    column("Groups", "string", "", 1, "Groups it is given to."),
    column("ServiceAccounts", "string", "", 1, "Service accounts it is given to."),
];

#[rustfmt::skip]
pub(crate) const QUOTA: &[Column] = &[
    NAME,
    column("Request", "string", "", 0, "What is requested or counted, of what may be."),
    column("Limit", "string", "", 0, "The limits, of what they may be."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const BUDGET: &[Column] = &[
    NAME,
    column("Min Available", "string", "", 0, "Pods that must stay."),
    column("Max Unavailable", "string", "", 0, "Pods that may be missing."),
    column("Allowed Disruptions", "integer", "", 0, "Pods that may go now."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const PRIORITY: &[Column] = &[
    NAME,
    column("Value", "integer", "", 0, "The priority of its pods."),
    column("Global-Default", "boolean", "", 0, "Whether pods have it that name none."),
    AGE,
];

pub(crate) fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let of = |kind: &str| -> Vec<Value> {
        let subjects = list(object, "/subjects").iter();
        subjects
            .filter(|subject| subject["kind"] == kind)
            .cloned()
            .collect()
    };
    let accounts: Vec<String> = of("ServiceAccount")
        .iter()
        .map(|subject| format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")))
        .collect();
    vec![
        name(object),
        format!(
            "{}/{}",
            text(object, "/roleRef/kind"),
            text(object, "/roleRef/name")
        )
        .into(),
        age_cell(object, now),
        joined(&of("User"), "/name", ", ").into(),
        joined(&of("Group"), "/name", ", ").into(),
        accounts.join(", ").into(),
    ]
}

pub(crate) fn quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    for (resource, amount) in hard.into_iter().flatten() {
        let used = object
            .pointer("/status/used")
            .map_or("", |used| used[resource].as_str().unwrap_or_default());
        let used = super::or(used, "0");
        let line = format!("{resource}: {used}/{}", amount.as_str().unwrap_or_default());
        if resource.starts_with("limits") {
            limits.push(line);
        } else {
            requests.push(line);
        }
    }
    vec![
        name(object),
        requests.join(", ").into(),
        limits.join(", ").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |field: &str| match object.pointer(&format!("/spec/{field}")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    let allowed = object
        .pointer("/status/disruptionsAllowed")
        .and_then(Value::as_i64);
    vec![
        name(object),
        bound("minAvailable").into(),
        bound("maxUnavailable").into(),
        allowed.unwrap_or(0).into(),
        age_cell(object, now),
    ]
}

pub(crate) fn created(object: &Value, _: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/metadata/creationTimestamp").into(),
    ]
}

pub(crate) fn priority(object: &Value, now: Timestamp) -> Vec<Value> {
    let value = object["value"].as_i64().unwrap_or(0);
    vec![
        name(object),
        value.into(),
        boolean(object, "/globalDefault"),
        age_cell(object, now),
    ]
}
