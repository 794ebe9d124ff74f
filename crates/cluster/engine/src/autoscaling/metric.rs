//! Converts metrics between autoscaling/v1 and autoscaling/v2.

use longshore_builtin::{json, json::Object};
use serde_json::{Map, Value, json};

/// The metric type and the paths of each field in v1 and v2, for specs and
/// statuses.
pub(super) const SPEC: &[(&str, &str, &str)] = &[
    ("object", "/target", "/describedObject"),
    ("object", "/targetValue", "/target/value"),
    ("object", "/averageValue", "/target/averageValue"),
    ("external", "/targetValue", "/target/value"),
    ("external", "/targetAverageValue", "/target/averageValue"),
    ("pods", "/targetAverageValue", "/target/averageValue"),
    (
        "resource",
        "/targetAverageUtilization",
        "/target/averageUtilization",
    ),
    ("resource", "/targetAverageValue", "/target/averageValue"),
];
pub(super) const STATUS: &[(&str, &str, &str)] = &[
    ("object", "/target", "/describedObject"),
    ("object", "/currentValue", "/current/value"),
    ("object", "/averageValue", "/current/averageValue"),
    ("external", "/currentValue", "/current/value"),
    ("external", "/currentAverageValue", "/current/averageValue"),
    ("pods", "/currentAverageValue", "/current/averageValue"),
    (
        "resource",
        "/currentAverageUtilization",
        "/current/averageUtilization",
    ),
    ("resource", "/currentAverageValue", "/current/averageValue"),
];
/// Fields that specs and statuses have in common.
const BOTH: &[(&str, &str, &str)] = &[
    ("external", "/metricName", "/metric/name"),
    ("external", "/metricSelector", "/metric/selector"),
    ("object", "/metricName", "/metric/name"),
    ("object", "/selector", "/metric/selector"),
    ("pods", "/metricName", "/metric/name"),
    ("pods", "/selector", "/metric/selector"),
    ("resource", "/name", "/name"),
    ("resource", "/container", "/container"),
];

fn put(object: &mut Object, pointer: &str, value: Value) {
    let mut at = object;
    let mut parts = pointer[1..].split('/').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.to_owned(), value);
            return;
        }
        at = json::child(at, part);
    }
}

/// Converts a metric to v1 if `old` is set, otherwise to v2.
pub(super) fn metric(metric: &Value, rules: &[(&str, &str, &str)], old: bool) -> Value {
    let mut made = Map::new();
    made.insert("type".into(), metric["type"].clone());
    for source in [
        "object",
        "external",
        "pods",
        "resource",
        "containerResource",
    ] {
        let Some(from) = metric.get(source) else {
            continue;
        };
        let named = if source == "containerResource" {
            "resource"
        } else {
            source
        };
        let mut to = Map::new();
        for (_, v1, v2) in rules.iter().chain(BOTH).filter(|(of, ..)| *of == named) {
            let (found, place) = if old { (v2, v1) } else { (v1, v2) };
            if let Some(value) = from.pointer(found) {
                put(&mut to, place, value.clone());
            }
        }
        made.insert(source.into(), Value::Object(to));
    }
    Value::Object(made)
}

/// Converts a v1 metric to v2 and sets the type of its target.
pub(super) fn target(old: &Value) -> Value {
    let mut made = metric(old, SPEC, false);
    let idle = json!("0");
    for (_, source) in made.as_object_mut().into_iter().flatten() {
        let Some(Value::Object(target)) = source.get_mut("target") else {
            continue;
        };
        let averaged = target.contains_key("averageValue");
        if averaged && target.get("value") == Some(&idle) {
            target.remove("value");
        }
        let kind = if target.contains_key("averageUtilization") {
            "Utilization"
        } else if averaged {
            "AverageValue"
        } else {
            "Value"
        };
        target.insert("type".into(), kind.into());
    }
    made
}
