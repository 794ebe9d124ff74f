//! Table rows of kinds with one or two simple cells.

use jiff::Timestamp;
use serde_json::Value;

use super::{age_cell, count, duration, name, or, text, time_at};

pub(crate) fn any(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age_cell(object, now)]
}

pub(crate) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/status/phase").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = count(object, "/data") + count(object, "/binaryData");
    vec![name(object), entries.into(), age_cell(object, now)]
}

pub(crate) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = count(object, "/data");
    vec![
        name(object),
        text(object, "/type").into(),
        entries.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    let secrets = count(object, "/secrets");
    vec![name(object), secrets.into(), age_cell(object, now)]
}

pub(crate) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/spec/holderIdentity").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let happened = time_at(event, "/eventTime");
    let first = time_at(event, "/firstTimestamp")
        .or_else(|| time_at(event, "/deprecatedFirstTimestamp"))
        .or(happened);
    let last = time_at(event, "/series/lastObservedTime")
        .or_else(|| time_at(event, "/lastTimestamp"))
        .or_else(|| time_at(event, "/deprecatedLastTimestamp"))
        .or(first);
    let occurrences = event
        .pointer("/series/count")
        .or_else(|| event.pointer("/count"))
        .or_else(|| event.pointer("/deprecatedCount"))
        .and_then(Value::as_i64)
        .unwrap_or(1);
    // The two API groups of events use different names for the same fields.
    let about = ["/involvedObject", "/regarding"]
        .into_iter()
        .find_map(|pointer| event.pointer(pointer))
        .unwrap_or(&Value::Null);
    let object = match (text(about, "/kind").to_lowercase(), text(about, "/name")) {
        (kind, "") => kind,
        (kind, name) => format!("{kind}/{name}"),
    };
    let first_of = |pointers: &[&str]| {
        let mut texts = pointers.iter().map(|pointer| text(event, pointer));
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first_of(&[
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    let host = first_of(&[
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
    ]);
    let source = if host.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {host}")
    };
    let message = or(text(event, "/message"), text(event, "/note")).trim();
    vec![
        duration::age(last, now).into(),
        text(event, "/type").into(),
        text(event, "/reason").into(),
        object.into(),
        text(about, "/fieldPath").into(),
        source.into(),
        message.into(),
        duration::age(first, now).into(),
        occurrences.into(),
        name(event),
    ]
}

pub(crate) fn definition(definition: &Value, _: Timestamp) -> Vec<Value> {
    let age_cell = text(definition, "/metadata/creationTimestamp");
    vec![name(definition), age_cell.into()]
}
