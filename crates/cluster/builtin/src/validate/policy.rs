//! Validation of PodDisruptionBudgets and PriorityClasses.

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    immutable, selector,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

/// The highest priority that is not reserved for system classes.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;
/// The system classes and their priorities.
const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(crate) fn budget(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        causes.invalid(&spec, "minAvailable and maxUnavailable cannot be both set");
    }
    for at in [least, most] {
        causes.number_or_percent(&at);
        causes.at_most_100_percent(&at);
    }
    selector::check(&spec.get("selector"), causes);
    let policy = spec.get("unhealthyPodEvictionPolicy");
    causes.one_of_if_set(&policy, &["AlwaysAllow", "IfHealthyBudget"]);
}

pub(crate) fn budget_status(object: &Object, causes: &mut CauseList) {
    let (status, causes) = (FieldValue::field(object, "status"), &mut Causes(causes));
    for field in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        causes.not_negative(&status.get(field));
    }
}

pub(crate) fn priority(object: &Object, causes: &mut CauseList) {
    let (name, value) = (
        json::text(object, "metadata.name"),
        json::number(object, "value").unwrap_or_default(),
    );
    if name.starts_with("system-") {
        let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
        let problem = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, expected)) if *expected != value => {
                Some(format!("value of {name} PriorityClass must be {expected}"))
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            causes.push(Cause::forbidden("metadata.name", &detail));
        }
    } else if value > MAX_USER_PRIORITY {
        let detail =
            format!("maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}");
        causes.push(Cause::forbidden("value", &detail));
    }
    let policy = FieldValue::field(object, "preemptionPolicy");
    Causes(causes).one_of_if_set(&policy, &["PreemptLowerPriority", "Never"]);
}

pub(crate) fn priority_change(before: &Object, after: &Object, causes: &mut CauseList) {
    let value = |object| json::number(object, "value").unwrap_or_default();
    if value(before) != value(after) {
        causes.push(Cause::forbidden(
            "value",
            "may not be changed in an update.",
        ));
    }
    immutable::fixed(before, after, &["preemptionPolicy"], causes);
}
