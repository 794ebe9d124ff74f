//! Validation of Deployments, ReplicaSets, DaemonSets, ReplicationControllers
//! and ControllerRevisions. StatefulSets are in `stateful_set.rs`.

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue, is_zero_or_absent},
    pod, selector,
};
use crate::{cause::Cause, json::Object};

const MISMATCH: &str = "`selector` does not match template `labels`";

/// Requires a selector that matches the pod template. `word` is the name of the
/// kind in the message about an empty selector.
pub(super) fn require_selector(spec: &FieldValue<'_>, word: &str, causes: &mut Causes<'_>) {
    let wanted = spec.get("selector");
    let labels = spec.get("template").get("metadata").get("labels");
    if wanted.is_set() {
        selector::check(&wanted, causes);
        if selector::is_empty(&wanted) {
            causes.invalid(&wanted, &format!("empty selector is invalid for {word}"));
            return;
        }
    } else {
        causes.required(&wanted, "");
        causes.invalid(&labels, MISMATCH);
        return;
    }
    if !selector::is_usable(&wanted) {
        causes.invalid(&wanted, "invalid label selector");
    } else if !selector::selects(&wanted, labels.object()) {
        causes.invalid(&labels, MISMATCH);
    }
}

/// Requires the restart policy `Always`.
pub(super) fn require_restart_always(spec: &FieldValue<'_>, word: &str, causes: &mut Causes<'_>) {
    let pod = spec.get("template").get("spec");
    causes.one_of(&pod.get("restartPolicy"), &["Always"]);
    if pod.get("activeDeadlineSeconds").is_set() {
        let detail = format!("activeDeadlineSeconds in {word} is not Supported");
        causes.forbidden(&pod.get("activeDeadlineSeconds"), &detail);
    }
}

/// Validates the pod template.
fn template(spec: &FieldValue<'_>, word: &str, causes: &mut Causes<'_>) {
    let template = spec.get("template");
    let labels = template.get("metadata").get("labels");
    causes.labels(&labels.with_path(format!("{}.labels", template.path)));
    let empty = Object::new();
    let pods = template.get("spec");
    pod::spec(pods.object().unwrap_or(&empty), &pods.path, causes.0);
    require_restart_always(spec, word, causes);
}

fn numbers(spec: &FieldValue<'_>, fields: &[&str], causes: &mut Causes<'_>) {
    for field in fields {
        causes.not_negative(&spec.get(field));
    }
}

pub(crate) fn deployment(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    numbers(&spec, &["replicas"], causes);
    require_selector(&spec, "deployment", causes);
    template(&spec, "ReplicaSet", causes);
    let strategy = spec.get("strategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                causes.forbidden(&rolling, detail);
            }
        }
        "RollingUpdate" => {
            let (down, up) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            causes.number_or_percent(&down);
            causes.number_or_percent(&up);
            if is_zero_or_absent(&down)
                && is_zero_or_absent(&up)
                && is_number_or_percent(&down)
                && is_number_or_percent(&up)
            {
                causes.invalid(&down, "may not be 0 when `maxSurge` is 0");
            }
            causes.at_most_100_percent(&down);
        }
        _ => {
            let message = format!(
                "Unsupported value: {}: supported values: \"Recreate\", \"RollingUpdate\"",
                strategy.value()
            );
            causes.0.push(Cause::plain(
                &strategy.path,
                "FieldValueNotSupported",
                message,
            ));
        }
    }
    numbers(
        &spec,
        &[
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ],
        causes,
    );
    let deadline = spec.get("progressDeadlineSeconds");
    let ready = spec.get("minReadySeconds").number().unwrap_or_default();
    if deadline.number().is_some_and(|deadline| deadline <= ready) {
        causes.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

/// Returns true if a value is a valid number or percentage.
fn is_number_or_percent(at: &FieldValue<'_>) -> bool {
    let mut problems = CauseList::new();
    Causes(&mut problems).number_or_percent(at);
    problems.is_empty()
}

pub(crate) fn replica_set(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    numbers(&spec, &["replicas", "minReadySeconds"], causes);
    require_selector(&spec, "deployment", causes);
    template(&spec, "ReplicaSet", causes);
}

pub(crate) fn daemon_set(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let labels = spec.get("template").get("metadata").get("labels");
    let wanted = spec.get("selector");
    selector::check(&wanted, causes);
    if !wanted.is_set()
        || selector::is_usable(&wanted) && !selector::selects(&wanted, labels.object())
    {
        causes.invalid(&labels, MISMATCH);
    }
    if wanted.is_set() && selector::is_empty(&wanted) {
        causes.invalid(&wanted, "empty selector is invalid for daemonset");
    }
    template(&spec, "DaemonSet", causes);
    numbers(&spec, &["minReadySeconds", "revisionHistoryLimit"], causes);
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (down, up) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            for at in [&down, &up] {
                causes.number_or_percent(at);
                causes.at_most_100_percent(at);
            }
            match (is_zero_or_absent(&down), is_zero_or_absent(&up)) {
                (true, true) => causes.required(&down, "cannot be 0 when maxSurge is 0"),
                (false, false) => {
                    causes.invalid(&up, "may not be set when maxUnavailable is non-zero");
                }
                _ => {}
            }
        }
        _ => {
            let message = format!(
                "Unsupported value: {}: supported values: \"RollingUpdate\", \"OnDelete\"",
                strategy.value()
            );
            causes.0.push(Cause::plain(
                &strategy.path,
                "FieldValueNotSupported",
                message,
            ));
        }
    }
}

pub(crate) fn replication_controller(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    numbers(&spec, &["minReadySeconds", "replicas"], causes);
    let wanted = spec.get("selector");
    if wanted.len() == 0 {
        causes.required(&wanted, "");
    }
    if !spec.get("template").is_set() {
        causes.required(&spec.get("template"), "");
        return;
    }
    let labels = spec.get("template").get("metadata").get("labels");
    let has = |key: &str, value: &str| labels.get(key).text() == value;
    if !wanted.entries().all(|(key, value)| has(key, value.text())) {
        causes.invalid(&labels, MISMATCH);
    }
    template(&spec, "ReplicationController", causes);
}

pub(crate) fn controller_revision(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let data = FieldValue::field(object, "data");
    if !data.is_set() {
        causes.required(&data, "data is mandatory");
    }
    causes.not_negative(&FieldValue::field(object, "revision"));
}

/// Validates the status of a ReplicaSet or ReplicationController.
pub(crate) fn replicas_status(_: &Object, after: &Object, causes: &mut CauseList) {
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    status(after, &parts, &["observedGeneration"], causes);
}

/// Validates the status of a Deployment.
pub(crate) fn deployment_status(_: &Object, after: &Object, causes: &mut CauseList) {
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let others = [
        "observedGeneration",
        "unavailableReplicas",
        "collisionCount",
    ];
    status(after, &parts, &others, causes);
}

/// Validates the status of a StatefulSet.
pub(crate) fn stateful_set_status(_: &Object, after: &Object, causes: &mut CauseList) {
    let parts = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    status(
        after,
        &parts,
        &["observedGeneration", "collisionCount"],
        causes,
    );
}

/// Validates the status of a DaemonSet.
pub(crate) fn daemon_set_status(_: &Object, after: &Object, causes: &mut CauseList) {
    let counters = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
        "observedGeneration",
    ];
    status(after, &[], &counters, causes);
}

/// Validates that the counters of a status are not negative and do not exceed `replicas`.
fn status(object: &Object, parts: &[&str], others: &[&str], causes: &mut CauseList) {
    let (status, causes) = (FieldValue::field(object, "status"), &mut Causes(causes));
    for field in [&["replicas"], parts, others].concat() {
        causes.not_negative(&status.get(field));
    }
    let number = |field: &str| status.get(field).number().unwrap_or_default();
    for field in parts {
        if number(field) > number("replicas") {
            let value = number(field);
            let path = format!("status.{field}");
            causes.0.push(Cause::invalid(
                &path,
                value,
                "cannot be greater than status.replicas",
            ));
        }
    }
    if parts.contains(&"availableReplicas") && number("availableReplicas") > number("readyReplicas")
    {
        let value = number("availableReplicas");
        let detail = "cannot be greater than readyReplicas";
        causes
            .0
            .push(Cause::invalid("status.availableReplicas", value, detail));
    }
}
