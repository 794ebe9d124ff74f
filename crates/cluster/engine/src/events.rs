//! Events of events.k8s.io. They are the same objects as the Events of the core
//! group, with newer field names and stricter validation.

use longshore_builtin::{OtherVersion, cause::Cause, json};
use longshore_model::{Gvk, KindInfo, Scope, StatusCause};
use serde_json::Value;

use crate::{decode::complete, rules::ViewRules};

/// Field names in the core group and in events.k8s.io.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Selectable fields of events.k8s.io and their names in the core group.
const SELECTABLE: &[(&str, &str)] = &[
    ("reason", "reason"),
    ("regarding.kind", "involvedObject.kind"),
    ("regarding.namespace", "involvedObject.namespace"),
    ("regarding.name", "involvedObject.name"),
    ("regarding.uid", "involvedObject.uid"),
    ("regarding.apiVersion", "involvedObject.apiVersion"),
    (
        "regarding.resourceVersion",
        "involvedObject.resourceVersion",
    ),
    ("regarding.fieldPath", "involvedObject.fieldPath"),
    ("reportingController", "reportingComponent"),
    ("type", "type"),
];

/// The Event kind of events.k8s.io.
pub(crate) fn info() -> KindInfo {
    KindInfo {
        gvk: Gvk::from_api_version(OtherVersion::EventsV1.api_version(), "Event"),
        plural: "events".into(),
        singular: "event".into(),
        short_names: ["ev".to_owned()].into_iter().collect(),
        categories: Default::default(),
        scope: Scope::Namespaced,
        subresources: Default::default(),
        list_kind: None,
    }
}

/// The rules of Events with the names of this version's selectable fields.
pub(crate) fn rules(stored: &ViewRules) -> ViewRules {
    stored.with_names(SELECTABLE)
}

fn rename<'a>(object: &mut json::Object, names: impl Iterator<Item = (&'a str, &'a str)>) {
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to.to_owned(), value);
        }
    }
}

/// Converts a core Event to events.k8s.io.
pub(crate) fn to_events_v1(mut event: json::Object) -> json::Object {
    rename(&mut event, NAMES.into_iter());
    event.insert("apiVersion".into(), "events.k8s.io/v1".into());
    complete(&info(), &mut event);
    event
}

/// Converts an Event of events.k8s.io to the stored core Event.
pub(crate) fn to_core_v1(mut event: json::Object) -> json::Object {
    rename(&mut event, NAMES.into_iter().map(|(core, new)| (new, core)));
    event.insert("apiVersion".into(), "v1".into());
    event
}

fn has_time(event: &json::Object, field: &str) -> bool {
    !json::text(event, field).is_empty()
}

/// Returns true if an Event has the newer `eventTime`.
fn is_timed(event: &json::Object) -> bool {
    has_time(event, "eventTime")
}

/// Validates the additional rules of events.k8s.io.
pub(crate) fn validate(before: Option<&json::Object>, event: &json::Object) -> Vec<StatusCause> {
    match before {
        None => validate_new(event),
        Some(before) => validate_change(before, event),
    }
}

fn validate_new(event: &json::Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if let Some(series) = event.get("series").filter(|series| series.is_object()) {
        if series["count"].as_i64().unwrap_or_default() < 2 {
            let why = "should be at least 2";
            causes.push(Cause::invalid("series.count", "", why));
        }
        if series["lastObservedTime"]
            .as_str()
            .is_none_or(str::is_empty)
        {
            causes.push(Cause::required("series.lastObservedTime", ""));
        }
    }
    if !is_timed(event) {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = json::text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        causes.push(Cause::invalid("type", "", &why));
    }
    for (field, given) in [
        ("firstTimestamp", has_time(event, "firstTimestamp")),
        ("lastTimestamp", has_time(event, "lastTimestamp")),
        (
            "count",
            json::number(event, "count").is_some_and(|count| count != 0),
        ),
        (
            "source",
            has_time(event, "source.component") || has_time(event, "source.host"),
        ),
    ] {
        if given {
            causes.push(Cause::invalid(field, "", "needs to be unset"));
        }
    }
    causes
}

/// All fields except the series and the metadata are immutable.
fn validate_change(before: &json::Object, event: &json::Object) -> Vec<StatusCause> {
    [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("type", "type"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ]
    .into_iter()
    .filter(|(field, _)| {
        let plain = |event: &json::Object| {
            let value = event.get(*field).cloned().unwrap_or_default();
            let nothing = match &value {
                Value::String(text) => text.is_empty(),
                Value::Object(map) => map.is_empty(),
                Value::Number(number) => number.as_i64() == Some(0),
                _ => false,
            };
            if nothing { Value::Null } else { value }
        };
        plain(before) != plain(event)
    })
    .map(|(field, shown)| Cause::immutable(shown, event.get(field)))
    .collect()
}

/// Renames the fields in causes to the field names of events.k8s.io.
pub(crate) fn rename_cause_fields(causes: &mut [StatusCause]) {
    for cause in causes {
        if cause.field == "reportingComponent" {
            cause.field = "reportingController".into();
        }
    }
}
