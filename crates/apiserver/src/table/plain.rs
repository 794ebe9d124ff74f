//! Rows of the kinds that need no more than a look at a field or two.

use jiff::Timestamp;
use serde_json::Value;

use super::{count, created, duration, instant, or, text};

fn name(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

pub(super) fn any(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), created(object, now)]
}

pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/status/phase").into(),
        created(object, now),
    ]
}

pub(super) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = count(object, "/data") + count(object, "/binaryData");
    vec![name(object), entries.into(), created(object, now)]
}

pub(super) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = count(object, "/data");
    vec![
        name(object),
        text(object, "/type").into(),
        entries.into(),
        created(object, now),
    ]
}

pub(super) fn service_account(object: &Value, now: Timestamp) -> Vec<Value> {
    let secrets = count(object, "/secrets");
    vec![name(object), secrets.into(), created(object, now)]
}

pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        text(object, "/spec/holderIdentity").into(),
        created(object, now),
    ]
}

pub(super) fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let happened = instant(event, "/eventTime");
    let first = instant(event, "/firstTimestamp")
        .or_else(|| instant(event, "/deprecatedFirstTimestamp"))
        .or(happened);
    let last = instant(event, "/series/lastObservedTime")
        .or_else(|| instant(event, "/lastTimestamp"))
        .or_else(|| instant(event, "/deprecatedLastTimestamp"))
        .or(first);
    let occurrences = event
        .pointer("/series/count")
        .or_else(|| event.pointer("/count"))
        .or_else(|| event.pointer("/deprecatedCount"))
        .and_then(Value::as_i64)
        .unwrap_or(1);
    // The two API groups of events name the same fields differently.
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

pub(super) fn definition(definition: &Value, _: Timestamp) -> Vec<Value> {
    let created = text(definition, "/metadata/creationTimestamp");
    vec![name(definition), created.into()]
}
