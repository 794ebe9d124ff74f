//! Table rows of webhook configurations, APIServices, certificate requests and
//! runtime classes.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    condition, count, duration, name, or, text,
};

#[rustfmt::skip]
pub(crate) const WEBHOOKS: &[Column] = &[
    NAME,
    column("Webhooks", "integer", "", 0, "How many webhooks it has."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SERVICE: &[Column] = &[
    NAME,
    column("Service", "string", "", 0, "The Service that serves the version."),
    column("Available", "string", "", 0, "Whether it is available."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const REQUEST: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", "string", "", 0, "The signer that is asked."),
    column("Requestor", "string", "", 0, "The user who asks."),
    column("RequestedDuration", "string", "", 0, "How long the certificate should be valid."),
    column("Condition", "string", "", 0, "Whether it is approved and issued."),
];

#[rustfmt::skip]
pub(crate) const RUNTIME: &[Column] = &[
    NAME,
    column("Handler", "string", "", 0, "What a node calls the runtime."),
    AGE,
];

pub(crate) fn service(object: &Value, now: Timestamp) -> Vec<Value> {
    let part = |field: &str| text(object, &format!("/spec/service/{field}"));
    let service = match (part("namespace"), part("name")) {
        ("", "") => "Local".to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let available = condition(object, "Available").map_or("Unknown".to_owned(), |known| {
        match (text(known, "/status"), text(known, "/reason")) {
            (status @ "True", _) | (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        }
    });
    vec![
        name(object),
        service.into(),
        available.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn request(object: &Value, now: Timestamp) -> Vec<Value> {
    let has = |kind| condition(object, kind).is_some();
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(object, "/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    let duration = object.pointer("/spec/expirationSeconds");
    let duration = duration.and_then(Value::as_i64);
    let duration = duration.map_or("<none>".to_owned(), duration::human);
    vec![
        name(object),
        age_cell(object, now),
        or(text(object, "/spec/signerName"), "<none>").into(),
        text(object, "/spec/username").into(),
        duration.into(),
        state.into(),
    ]
}

pub(crate) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    let webhooks = count(object, "/webhooks");
    vec![name(object), webhooks.into(), age_cell(object, now)]
}

pub(crate) fn runtime_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let handler = text(object, "/handler");
    vec![name(object), handler.into(), age_cell(object, now)]
}
