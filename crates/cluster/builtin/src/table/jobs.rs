//! Table rows of Jobs.

use jiff::Timestamp;
use serde_json::Value;

use super::{age_cell, duration, holds, list, name, selector, text, time_at};

pub(crate) fn cells(job: &Value, now: Timestamp) -> Vec<Value> {
    let containers = list(job, "/spec/template/spec/containers");
    let joined = |pointer| {
        let words: Vec<&str> = containers
            .iter()
            .map(|container| text(container, pointer))
            .collect();
        words.join(",")
    };
    vec![
        name(job),
        status(job).into(),
        completions(job).into(),
        duration_cell(job, now).into(),
        age_cell(job, now),
        joined("/name").into(),
        joined("/image").into(),
        selector(job, "/spec/selector").into(),
    ]
}

fn status(job: &Value) -> &'static str {
    let deleted = job
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|time| !time.is_null());
    if holds(job, "Complete") {
        "Complete"
    } else if holds(job, "Failed") {
        "Failed"
    } else if deleted {
        "Terminating"
    } else if holds(job, "Suspended") {
        "Suspended"
    } else if holds(job, "FailureTarget") {
        "FailureTarget"
    } else if holds(job, "SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let number = |pointer| job.pointer(pointer).and_then(Value::as_i64);
    let succeeded = number("/status/succeeded").unwrap_or(0);
    match (number("/spec/completions"), number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(width)) if width > 1 => format!("{succeeded}/1 of {width}"),
        _ => format!("{succeeded}/1"),
    }
}

fn duration_cell(job: &Value, now: Timestamp) -> String {
    let Some(start) = time_at(job, "/status/startTime") else {
        return String::new();
    };
    let end = time_at(job, "/status/completionTime").unwrap_or(now);
    duration::human(duration::span(start, end))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_running_and_a_finished_job() {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let running = json!({
            "metadata": {"name": "j", "creationTimestamp": "2026-01-01T00:50:00Z"},
            "spec": {
                "completions": 3,
                "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]},
                "template": {"spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "k"}]}},
            },
            "status": {"succeeded": 1, "startTime": "2026-01-01T00:59:15Z"},
        });
        assert_eq!(
            Value::from(cells(&running, now)),
            json!([
                "j",
                "Running",
                "1/3",
                "45s",
                "10m",
                "x,y",
                "i,k",
                "a=b,c in (d)"
            ])
        );
        let mut done = running;
        done["status"]["completionTime"] = "2026-01-01T00:59:20Z".into();
        done["status"]["conditions"] = json!([{"type": "Complete", "status": "True"}]);
        assert_eq!(
            Value::from(cells(&done, now)[1..4].to_vec()),
            json!(["Complete", "1/3", "5s"])
        );
    }
}
