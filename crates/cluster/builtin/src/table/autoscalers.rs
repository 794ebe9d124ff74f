//! Table rows of HorizontalPodAutoscalers, in both versions.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    list, name, or, text,
};

/// Maximum number of metrics that are shown.
const MAX_SHOWN: usize = 2;

#[rustfmt::skip]
pub(crate) const COLUMNS: &[Column] = &[
    NAME,
    column("Reference", "string", "", 0, "The object that is scaled."),
    column("Targets", "string", "", 0, "The metrics, and what they should be."),
    column("MinPods", "string", "", 0, "The fewest pods."),
    column("MaxPods", "string", "", 0, "The most pods."),
    column("Replicas", "string", "", 0, "Pods there are."),
    AGE,
];

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Formats a metric and its target; `current` is its status.
fn metric(metric: &Value, current: Option<&Value>) -> String {
    let kind = text(metric, "/type");
    let field = match kind {
        "ContainerResource" => "containerResource".to_owned(),
        "External" | "Object" | "Pods" | "Resource" => kind.to_lowercase(),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &metric[&field]["target"];
    let current = current.map(|current| &current[&field]["current"]);
    let known = |field: &str| {
        let found = current.map(|current| &current[field]);
        match found {
            Some(Value::String(amount)) => amount.clone(),
            Some(Value::Number(percent)) => format!("{percent}%"),
            _ => "<unknown>".to_owned(),
        }
    };
    let average = text(target, "/averageValue");
    if matches!(field.as_str(), "resource" | "containerResource") {
        let resource = text(&metric[&field], "/name");
        let wanted = number(target, "/averageUtilization")
            .map_or("<auto>".to_owned(), |percent| format!("{percent}%"));
        return match average {
            "" => format!("{resource}: {}/{wanted}", known("averageUtilization")),
            _ => format!("{resource}: {}/{average}", known("averageValue")),
        };
    }
    match (kind, average) {
        ("Pods", _) => format!("{}/{average}", known("averageValue")),
        (_, "") => format!("{}/{}", known("value"), text(target, "/value")),
        _ => format!("{}/{average} (avg)", known("averageValue")),
    }
}

/// Formats the CPU target that autoscaling/v1 has instead of metrics.
fn cpu_alone(object: &Value) -> Option<String> {
    let wanted = number(object, "/spec/targetCPUUtilizationPercentage")?;
    let current = number(object, "/status/currentCPUUtilizationPercentage")
        .map_or("<unknown>".to_owned(), |percent| format!("{percent}%"));
    Some(format!("cpu: {current}/{wanted}%"))
}

pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let current = list(object, "/status/currentMetrics");
    let metrics = list(object, "/spec/metrics").iter().enumerate();
    let mut metrics: Vec<String> = metrics
        .map(|(index, one)| metric(one, current.get(index)))
        .chain(cpu_alone(object))
        .collect();
    let more = metrics.len().saturating_sub(MAX_SHOWN);
    metrics.truncate(MAX_SHOWN);
    let mut targets = metrics.join(", ");
    if more > 0 {
        targets = format!("{targets} + {more} more...");
    }
    let reference = ["kind", "name"]
        .map(|field| text(object, &format!("/spec/scaleTargetRef/{field}")))
        .join("/");
    let least = number(object, "/spec/minReplicas");
    vec![
        name(object),
        reference.into(),
        or(&targets, "<none>").into(),
        least
            .map_or("<unset>".to_owned(), |least| least.to_string())
            .into(),
        number(object, "/spec/maxReplicas")
            .unwrap_or_default()
            .into(),
        number(object, "/status/currentReplicas")
            .unwrap_or_default()
            .into(),
        age_cell(object, now),
    ]
}
