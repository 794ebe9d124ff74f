//! Validation of StatefulSets.

use longshore_model::CauseList;
use serde_json::{Value, json};

use super::{
    field_value::{Causes, FieldValue},
    immutable, pod, workload,
};
use crate::json::{self, Object};

/// Validates a StatefulSet. Each claim template also provides a volume for the
/// pods.
pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
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
    // A negative revisionHistoryLimit keeps all revisions.
    for field in ["replicas", "minReadySeconds"] {
        causes.not_negative(&spec.get(field));
    }
    causes.not_negative(&spec.get("ordinals").get("start"));
    workload::require_selector(&spec, "statefulset", causes);
    let template = spec.get("template");
    causes.labels(&template.get("metadata").get("labels"));
    let mut pods = template.get("spec").object().cloned().unwrap_or_default();
    let claims = spec.get("volumeClaimTemplates");
    let names: Vec<_> = claims
        .items()
        .map(|claim| claim.get("metadata").get("name").text())
        .collect();
    let volumes = json::items(&pods, "volumes")
        .filter(|volume| !names.contains(&json::text(volume, "name")))
        .map(|volume| Value::Object(volume.clone()));
    let of_claims = names.iter().map(|name| {
        let source = json!({"claimName": name});
        json!({"name": name, "persistentVolumeClaim": source})
    });
    let volumes: Vec<Value> = of_claims.chain(volumes).collect();
    if !volumes.is_empty() {
        pods.insert("volumes".into(), volumes.into());
    }
    pod::spec(&pods, "spec.template.spec", causes.0);
    workload::require_restart_always(&spec, "StatefulSet", causes);
}

/// Validates a change of a StatefulSet.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let shown = [
        "spec.selector",
        "spec.serviceName",
        "spec.podManagementPolicy",
    ];
    immutable::fixed(before, after, &shown, causes);
    immutable::fixed_without_value(before, after, &["spec.volumeClaimTemplates"], causes);
}
