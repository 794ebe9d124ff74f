//! Limits, stabilization, and the conditions that report them.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::autoscale::testing::{at, autoscaler};

/// The reasons of the conditions, with `!` if their status is False.
fn reasons(draft: &Draft) -> Vec<String> {
    let conditions = draft.status.conditions.iter().flatten();
    let reasons = conditions.map(|one| {
        let not = if one.status == "True" { "" } else { "!" };
        format!("{not}{}", one.reason.clone().unwrap_or_default())
    });
    reasons.collect()
}

fn normalized(
    autoscaler: &Autoscaler,
    history: &mut History,
    current: i32,
    wanted: i32,
    second: i64,
) -> (i32, String, Vec<String>) {
    let mut draft = Draft::new(autoscaler, at(second));
    let wanted = (wanted, "cpu resource".to_owned());
    let desired = normalize(autoscaler, current, wanted, history, &mut draft);
    (desired.replicas, desired.reason, reasons(&draft))
}

#[test]
fn replicas_outside_the_limits_are_changed_without_metrics() {
    let autoscaler = autoscaler(json!({"minReplicas": 2, "maxReplicas": 5}));
    let mut draft = Draft::new(&autoscaler, at(0));
    let mut found = |current| basis(&autoscaler, current, &mut draft);
    let above = "Current number of replicas above Spec.MaxReplicas";
    let below = "Current number of replicas below Spec.MinReplicas";
    assert_eq!(found(6), Basis::Limit(5, above));
    assert_eq!(found(1), Basis::Limit(2, below));
    assert_eq!(found(5), Basis::Metrics);
    assert_eq!(found(0), Basis::Disabled);
    assert_eq!(reasons(&draft), ["!ScalingDisabled"]);
}

fn with_condition(spec: Value, status: &str) -> Autoscaler {
    let mut autoscaler = autoscaler(spec);
    let condition = json!([{"type": "ScaledToZero", "status": status}]);
    autoscaler.status.conditions = serde_json::from_value(condition).unwrap();
    autoscaler
}

#[test]
fn a_target_that_the_controller_scaled_to_zero_is_scaled_again() {
    let external = json!([{"type": "External", "external": {"metric": {"name": "q"},
        "target": {"type": "Value", "value": "1"}}}]);
    let zero = json!({"minReplicas": 0, "metrics": external});
    for (spec, status, is_scaled) in [
        (zero.clone(), "True", true),
        (zero.clone(), "False", false),
        (json!({"minReplicas": 0}), "True", false),
        (json!({"minReplicas": 2}), "True", true),
        (json!({"minReplicas": 2}), "False", false),
    ] {
        let autoscaler = with_condition(spec.clone(), status);
        let mut draft = Draft::new(&autoscaler, at(0));
        let found = basis(&autoscaler, 0, &mut draft);
        assert_eq!(found == Basis::Metrics, is_scaled, "{spec} {status}");
    }
    let rules = json!({"scaleUp": {}, "scaleDown": {}});
    let spec = json!({"minReplicas": 2, "behavior": rules});
    let autoscaler = with_condition(spec, "True");
    let (replicas, reason, _) = normalized(&autoscaler, &mut History::default(), 0, 0, 0);
    let below = "Current number of replicas below Spec.MinReplicas";
    assert_eq!((replicas, &*reason), (2, below));
}

#[test]
fn increases_are_limited_and_decreases_wait() {
    let autoscaler = autoscaler(json!({"minReplicas": 2, "maxReplicas": 10}));
    let mut history = History::default();
    history.begin(3, at(0));
    let mut found =
        |current, wanted, second| normalized(&autoscaler, &mut history, current, wanted, second);
    let (replicas, reason, conditions) = found(3, 20, 0);
    assert_eq!((replicas, &*reason), (6, "cpu resource above target"));
    assert_eq!(conditions, ["ReadyForNewScale", "ScaleUpLimit"]);
    let (replicas, _, conditions) = found(6, 20, 15);
    assert_eq!(replicas, 10);
    assert_eq!(conditions, ["ReadyForNewScale", "TooManyReplicas"]);
    // The higher recommendation applies for five minutes.
    let (replicas, reason, conditions) = found(10, 1, 30);
    assert_eq!((replicas, &*reason), (10, "All metrics below target"));
    assert_eq!(conditions, ["ScaleDownStabilized", "TooManyReplicas"]);
    assert_eq!(found(10, 1, 315).0, 10);
    let (replicas, reason, conditions) = found(10, 1, 316);
    assert_eq!((replicas, &*reason), (2, "All metrics below target"));
    assert_eq!(conditions, ["ReadyForNewScale", "TooFewReplicas"]);
    let (replicas, reason, conditions) = found(2, 2, 330);
    assert_eq!((replicas, &*reason), (2, ""));
    assert_eq!(conditions, ["ReadyForNewScale", "!DesiredWithinRange"]);
}

#[test]
fn rules_limit_the_rate() {
    let policy = json!([{"type": "Pods", "value": 2, "periodSeconds": 60}]);
    let rules = |seconds: i64| {
        json!({"policies": policy, "selectPolicy": "Max",
            "stabilizationWindowSeconds": seconds})
    };
    let spec = json!({"behavior": {"scaleUp": rules(0), "scaleDown": rules(30)}});
    let autoscaler = autoscaler(spec);
    let mut history = History::default();
    let (replicas, _, conditions) = normalized(&autoscaler, &mut history, 3, 9, 0);
    assert_eq!(replicas, 5);
    assert_eq!(conditions, ["ReadyForNewScale", "ScaleUpLimit"]);
    let desired = Desired {
        replicas: 5,
        reason: "cpu resource above target".to_owned(),
    };
    let mut draft = Draft::new(&autoscaler, at(0));
    scaled(&autoscaler, 3, &desired, &mut history, &mut draft);
    assert_eq!(reasons(&draft), ["SucceededRescale", "!NotScaledToZero"]);
    assert!(draft.status.last_scale_time.is_some());
    let message = "New size: 5; reason: cpu resource above target";
    assert_eq!(draft.events[0].message, message);

    assert_eq!(normalized(&autoscaler, &mut history, 5, 9, 30).0, 5);
    assert_eq!(normalized(&autoscaler, &mut history, 5, 9, 61).0, 7);
    let (replicas, _, conditions) = normalized(&autoscaler, &mut history, 7, 1, 80);
    assert_eq!((replicas, &*conditions[0]), (7, "ScaleDownStabilized"));
    assert_eq!(normalized(&autoscaler, &mut history, 7, 1, 100).0, 5);
}

#[test]
fn a_failed_request_is_reported() {
    let autoscaler = autoscaler(json!({}));
    let mut draft = Draft::new(&autoscaler, at(0));
    let desired = Desired {
        replicas: 4,
        reason: "why".to_owned(),
    };
    not_scaled(&desired, "no", &mut draft);
    assert_eq!(reasons(&draft), ["!FailedUpdateScale"]);
    let message = "New size: 4; reason: why; error: no";
    assert_eq!(draft.events[0].message, message);
}
