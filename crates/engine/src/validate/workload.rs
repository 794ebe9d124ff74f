//! Rules of Deployments, ReplicaSets, DaemonSets, ReplicationControllers and
//! ControllerRevisions. Those of StatefulSets are in `stateful.rs`.

use longshore_model::StatusCause;

use super::{
    at::{At, Causes, is_none},
    pod, selector,
};
use crate::{cause::Cause, json::Object};

const MISMATCH: &str = "`selector` does not match template `labels`";

/// A selector that must be there and select the template's pods. `word` is the
/// kind as the message about an empty one has it.
pub(super) fn selecting(spec: &At<'_>, word: &str, causes: &mut Causes<'_>) {
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

/// Pods of a workload always restart.
pub(super) fn endless(spec: &At<'_>, word: &str, causes: &mut Causes<'_>) {
    let pod = spec.get("template").get("spec");
    causes.one_of(&pod.get("restartPolicy"), &["Always"]);
    if pod.get("activeDeadlineSeconds").is_set() {
        let detail = format!("activeDeadlineSeconds in {word} is not Supported");
        causes.forbidden(&pod.get("activeDeadlineSeconds"), &detail);
    }
}

/// The pods' template.
fn template(spec: &At<'_>, word: &str, causes: &mut Causes<'_>) {
    let template = spec.get("template");
    let labels = template.get("metadata").get("labels");
    causes.labels(&labels.called(format!("{}.labels", template.path)));
    let empty = Object::new();
    let pods = template.get("spec");
    pod::spec(pods.object().unwrap_or(&empty), &pods.path, causes.0);
    endless(spec, word, causes);
}

fn numbers(spec: &At<'_>, fields: &[&str], causes: &mut Causes<'_>) {
    for field in fields {
        causes.not_negative(&spec.get(field));
    }
}

pub(super) fn deployment(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
    numbers(&spec, &["replicas"], causes);
    selecting(&spec, "deployment", causes);
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
            if is_none(&down) && is_none(&up) && sensible(&down) && sensible(&up) {
                causes.invalid(&down, "may not be 0 when `maxSurge` is 0");
            }
            causes.at_most_all(&down);
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

/// Whether a number or percentage is one.
fn sensible(at: &At<'_>) -> bool {
    let mut problems = Vec::new();
    Causes(&mut problems).number_or_percent(at);
    problems.is_empty()
}

pub(super) fn replica_set(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
    numbers(&spec, &["replicas", "minReadySeconds"], causes);
    selecting(&spec, "deployment", causes);
    template(&spec, "ReplicaSet", causes);
}

pub(super) fn daemon_set(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
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
                causes.at_most_all(at);
            }
            match (is_none(&down), is_none(&up)) {
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

pub(super) fn replication_controller(object: &Object, causes: &mut Vec<StatusCause>) {
    let (spec, causes) = (At::field(object, "spec"), &mut Causes(causes));
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

pub(super) fn controller_revision(object: &Object, causes: &mut Vec<StatusCause>) {
    let causes = &mut Causes(causes);
    let data = At::field(object, "data");
    if !data.is_set() {
        causes.required(&data, "data is mandatory");
    }
    causes.not_negative(&At::field(object, "revision"));
}

/// Numbers of a status: none is negative, and none is greater than `replicas`.
pub(super) fn status(
    object: &Object,
    parts: &[&str],
    others: &[&str],
    causes: &mut Vec<StatusCause>,
) {
    let (status, causes) = (At::field(object, "status"), &mut Causes(causes));
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
