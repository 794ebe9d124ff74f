//! Rules of StatefulSets.

use longshore_model::StatusCause;
use serde_json::Value;

use super::{
    Cause,
    at::{At, Causes},
    workload,
};
use crate::json::{self, Object};

const CHANGE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// The fields that an update may change.
const CHANGEABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// What is wrong with a StatefulSet. Its template is not looked into: mounts
/// may name claims that are made from other templates.
pub(super) fn object(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
    let policy = spec.get("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        causes.invalid(&policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {
            if rolling.is_set() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                causes.invalid(&rolling, detail);
            }
        }
        "RollingUpdate" => causes.not_negative(&rolling.get("partition")),
        _ => causes.invalid(&strategy, "must be 'RollingUpdate' or 'OnDelete'"),
    }
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        causes.one_of_if_set(&retention.get(field), &["Retain", "Delete"]);
    }
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        causes.not_negative(&spec.get(field));
    }
    causes.not_negative(&spec.get("ordinals").get("start"));
    workload::selecting(&spec, "statefulset", causes);
    causes.labels(&spec.get("template").get("metadata").get("labels"));
    workload::endless(&spec, "StatefulSet", causes);
}

/// What is wrong with a change.
pub(super) fn change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (before.get("spec"), after.get("spec"))
    else {
        return;
    };
    let mut allowed = new.clone();
    for field in CHANGEABLE {
        json::copy(old, &mut allowed, field);
    }
    if allowed != *old {
        causes.push(Cause::forbidden("spec", CHANGE));
    }
}
