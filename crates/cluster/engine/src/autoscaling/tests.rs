//! Fields that autoscaling/v1 lacks are restored from annotations.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn object(value: &Value) -> Object {
    value.as_object().unwrap().clone()
}

/// A stored autoscaler that sets every kind of field.
fn full() -> Value {
    let named = json!({"name": "m", "selector": {"matchLabels": {"a": "b"}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "name": "s"});
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a", "annotations": {"mine": "kept"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Pods", "pods": {"metric": named, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Object", "object": {"describedObject": service, "metric": {"name": "m"}, "target": {"type": "Value", "value": "10"}}},
                {"type": "External", "external": {"metric": named, "target": {"type": "AverageValue", "averageValue": "3"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
            ],
            "behavior": {
                "scaleUp": {"selectPolicy": "Max", "stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
            },
        },
        "status": {
            "currentReplicas": 1,
            "desiredReplicas": 2,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5, "averageValue": "100m"}}},
                {"type": "Object", "object": {"describedObject": service, "metric": {"name": "m"}, "current": {"value": "10"}}},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True", "reason": "r"}],
        },
    })
}

#[test]
fn autoscalers_round_trip_through_v1() {
    let shown = to_v1(object(&full()));
    assert_eq!(shown["apiVersion"], "autoscaling/v1");
    assert_eq!(shown["spec"]["targetCPUUtilizationPercentage"], 80);
    assert_eq!(shown["status"]["currentCPUUtilizationPercentage"], 5);
    assert!(shown["spec"].get("metrics").is_none());
    let annotations = shown["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.len(), 5);
    let memory = r#""resource":{"name":"memory","targetAverageValue":"1Gi"}"#;
    assert!(annotations[METRICS].as_str().unwrap().contains(memory));
    let window = r#""StabilizationWindowSeconds":0"#;
    assert!(annotations[BEHAVIOR].as_str().unwrap().contains(window));
    assert_eq!(Value::Object(to_v2(shown)), full());
}

#[test]
fn malformed_annotations_are_dropped() {
    let mut shown = to_v1(object(&full()));
    let odd = r#"[{"type": "Resource", "resource": {"name": 5}}]"#;
    let annotations = json!({METRICS: odd, BEHAVIOR: "1", CURRENT: "{}", CONDITIONS: "["});
    shown["metadata"]["annotations"] = annotations;
    let stored = to_v2(shown);
    assert_eq!(stored["spec"]["metrics"].as_array().unwrap().len(), 1);
    assert!(stored["spec"].get("behavior").is_none());
    assert!(stored["metadata"].get("annotations").is_none());
}
