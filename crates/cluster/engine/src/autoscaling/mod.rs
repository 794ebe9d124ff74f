//! HorizontalPodAutoscalers of autoscaling/v1. They are the same objects as in v2, but v1 has
//! fields only for the CPU metric and keeps all other fields in annotations.

mod metric;
#[cfg(test)]
mod tests;

use longshore_builtin::{OtherVersion, json, json::Object};
use longshore_model::{Gvk, KindInfo, kind::builtin};
use serde_json::{Map, Value, json};

use self::metric::{SPEC, STATUS, metric, target};
use crate::{
    FieldValidation,
    decode::{complete, decode},
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The autoscaling/v1 kind of the stored v2 kind.
pub(crate) fn info(stored: &KindInfo) -> KindInfo {
    let version = OtherVersion::AutoscalingV1.api_version();
    KindInfo {
        gvk: Gvk::from_api_version(version, &stored.gvk.kind),
        ..stored.clone()
    }
}

/// Renames all fields. `name` converts the first letter: Go's field names begin with an upper-case
/// letter, JSON's with a lower-case letter.
fn renamed(value: &Value, name: fn(char) -> char) -> Value {
    match value {
        Value::Object(fields) => {
            let rename = |(field, value): (&String, &Value)| {
                let mut rest = field.chars();
                let first = rest.next().map(name);
                (
                    first.into_iter().chain(rest).collect(),
                    renamed(value, name),
                )
            };
            fields.iter().map(rename).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| renamed(item, name)).collect(),
        other => other.clone(),
    }
}

/// The CPU utilization in the spec or status of a metric.
fn cpu(metric: &Value, place: &str) -> Option<Value> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let share = &metric["resource"][place]["averageUtilization"];
    (is_cpu && !share.is_null()).then(|| share.clone())
}

fn take_list(object: &mut Object, name: &str) -> Vec<Value> {
    match object.remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// Converts a stored autoscaler to v1.
pub(crate) fn to_v1(mut object: Object) -> Object {
    let mut notes = Vec::new();
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        let metrics = take_list(spec, "metrics");
        if let Some(share) = metrics.iter().find_map(|one| cpu(one, "target")) {
            spec.insert("targetCPUUtilizationPercentage".into(), share);
        }
        let others = metrics.iter().filter(|one| cpu(one, "target").is_none());
        let others: Vec<Value> = others.map(|one| metric(one, SPEC, true)).collect();
        if !others.is_empty() {
            notes.push((METRICS, Value::Array(others)));
        }
        if let Some(behavior) = spec.remove("behavior") {
            notes.push((BEHAVIOR, renamed(&behavior, |c| c.to_ascii_uppercase())));
        }
    }
    if let Some(Value::Object(status)) = object.get_mut("status") {
        let metrics = take_list(status, "currentMetrics");
        if let Some(share) = metrics.iter().rev().find_map(|one| cpu(one, "current")) {
            status.insert("currentCPUUtilizationPercentage".into(), share);
        }
        let metrics: Vec<Value> = metrics
            .iter()
            .map(|one| metric(one, STATUS, true))
            .collect();
        let conditions = take_list(status, "conditions");
        for (name, list) in [(CURRENT, metrics), (CONDITIONS, conditions)] {
            if !list.is_empty() {
                notes.push((name, Value::Array(list)));
            }
        }
    }
    if !notes.is_empty() {
        let metadata = json::child(&mut object, "metadata");
        let annotations = json::child(metadata, "annotations");
        let notes = notes.into_iter();
        annotations.extend(notes.map(|(name, note)| (name.to_owned(), note.to_string().into())));
    }
    object.insert("apiVersion".into(), "autoscaling/v1".into());
    let stored = builtin("autoscaling", "HorizontalPodAutoscaler");
    if let Some(stored) = stored {
        complete(&info(stored), &mut object);
    }
    object
}

/// Converts a v1 autoscaler to the stored version.
pub(crate) fn to_v2(mut object: Object) -> Object {
    let mut note = |name: &str| {
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
        let text = annotations.remove(name);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        serde_json::from_str::<Value>(text?.as_str()?).ok()
    };
    let [metrics, current, behavior, conditions] =
        [METRICS, CURRENT, BEHAVIOR, CONDITIONS].map(&mut note);
    let list = |note: Option<Value>, form: fn(&Value) -> Value, place| match note {
        Some(Value::Array(list)) => match decode_annotation(place, list.iter().map(form).collect())
        {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let spec = json::child(&mut object, "spec");
    let mut metrics = list(metrics, target, ["spec", "metrics"]);
    if let Some(share) = spec.remove("targetCPUUtilizationPercentage") {
        let target = json!({"type": "Utilization", "averageUtilization": share});
        let source = json!({"name": "cpu", "target": target});
        metrics.push(json!({"type": "Resource", "resource": source}));
    }
    if !metrics.is_empty() {
        spec.insert("metrics".into(), metrics.into());
    }
    if let Some(behavior) = behavior.filter(Value::is_object) {
        let mut behavior = renamed(&behavior, |c| c.to_ascii_lowercase());
        drop_nulls(&mut behavior);
        if let Some(behavior) = decode_annotation(["spec", "behavior"], behavior) {
            spec.insert("behavior".into(), behavior);
        }
    }
    if let Some(Value::Object(status)) = object.get_mut("status") {
        let form = |one: &Value| metric(one, STATUS, false);
        let mut metrics = list(current, form, ["status", "currentMetrics"]);
        let share = status.remove("currentCPUUtilizationPercentage");
        if let Some(share) = share.filter(|_| metrics.is_empty()) {
            let source = json!({"name": "cpu", "current": {"averageUtilization": share}});
            metrics.push(json!({"type": "Resource", "resource": source}));
        }
        let conditions = list(conditions, Value::clone, ["status", "conditions"]);
        for (name, list) in [("currentMetrics", metrics), ("conditions", conditions)] {
            if !list.is_empty() {
                status.insert(name.to_owned(), list.into());
            }
        }
    }
    object.insert("apiVersion".into(), "autoscaling/v2".into());
    object
}

/// Decodes a v2 field from an annotation; `None` if it does not match the type
/// of the field.
fn decode_annotation([part, field]: [&str; 2], value: Value) -> Option<Value> {
    let info = builtin("autoscaling", "HorizontalPodAutoscaler")?;
    let object = json!({part: {field: value}});
    let decoded = decode(info, None, object, FieldValidation::Ignore).ok()?;
    decoded.object.get(part)?.get(field).cloned()
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
