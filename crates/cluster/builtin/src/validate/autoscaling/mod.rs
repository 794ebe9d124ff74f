//! Validation of HorizontalPodAutoscalers.

mod metrics;

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{cause::Cause, json::Object};

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let (least, most) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    causes.not_negative(&least);
    let number = most.number().unwrap_or_default();
    if number == 0 {
        causes.required(&most, "");
    } else if number < 0 {
        causes.invalid(&most, "must be greater than or equal to 1");
    }
    if least.number().is_some_and(|least| number < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.0.push(Cause::invalid(&most.path, number, detail));
    }
    reference(&spec.get("scaleTargetRef"), causes);
    let metrics = spec.get("metrics");
    metrics
        .items()
        .for_each(|one| metrics::metric(&one, causes));
    let scales_from_zero =
        |one: FieldValue<'_>| matches!(one.get("type").text(), "Object" | "External");
    if least.number() == Some(0) && !metrics.items().any(scales_from_zero) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.forbidden(&metrics, detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        rules(&spec.get("behavior").get(direction), causes);
    }
}

/// Validates the API version of the scale target of a new autoscaler.
pub(crate) fn target(object: &Object, causes: &mut CauseList) {
    let target = FieldValue::field(object, "spec").get("scaleTargetRef");
    let core = target.get("kind").text() == "ReplicationController";
    version(&target.get("apiVersion"), core, &mut Causes(causes));
}

/// Validates the scale target again if it has changed.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let kind = |object| {
        let target = FieldValue::field(object, "spec").get("scaleTargetRef");
        ["apiVersion", "kind"].map(|field| target.get(field).text().to_owned())
    };
    if kind(before) != kind(after) {
        target(after, causes);
    }
}

pub(crate) fn status(object: &Object, causes: &mut CauseList) {
    let (status, causes) = (FieldValue::field(object, "status"), &mut Causes(causes));
    for condition in status.get("conditions").items() {
        causes.not_negative(&condition.get("observedGeneration"));
    }
    for field in ["currentReplicas", "desiredReplicas"] {
        causes.not_negative(&status.get(field));
    }
}

fn rules(rules: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => causes.invalid(&window, "must be greater than or equal to zero"),
        Some(3601..) => causes.invalid(&window, "must be less than or equal to 3600"),
        _ => {}
    }
    let select = rules.get("selectPolicy");
    causes.one_of_if_set(&select, &["Disabled", "Max", "Min"]);
    let policies = rules.get("policies");
    if policies.len() == 0 {
        causes.required(&policies, "must specify at least one Policy");
    }
    for policy in policies.items() {
        causes.one_of(&policy.get("type"), &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let number = policy.get(field);
            if number.number().unwrap_or_default() <= 0 {
                causes.invalid(&number, "must be greater than zero");
            }
        }
        let period = policy.get("periodSeconds");
        if period.number().is_some_and(|seconds| seconds > 1800) {
            causes.invalid(&period, "must be less than or equal to 1800");
        }
    }
    let tolerance = rules.get("tolerance");
    if tolerance.quantity().is_some_and(|quantity| quantity < 0.0) {
        causes.invalid(&tolerance, "must be greater than or equal to 0");
    }
}

fn version(at: &FieldValue<'_>, core: bool, causes: &mut Causes<'_>) {
    let text = at.text();
    if text.matches('/').count() > 1 {
        causes.invalid(at, &format!("unexpected GroupVersion string: {text}"));
    } else if !core
        && text
            .split_once('/')
            .is_none_or(|(group, _)| group.is_empty())
    {
        causes.0.push(Cause::invalid(
            &at.path,
            text,
            "apiVersion must specify API group",
        ));
    }
}

fn reference(target: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for field in ["kind", "name"] {
        let at = target.get(field);
        if at.text().is_empty() {
            causes.required(&at, "");
        } else {
            meta::path_segment(&at.path, at.text(), causes.0);
        }
    }
}
