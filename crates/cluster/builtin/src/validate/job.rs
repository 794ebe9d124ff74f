//! Validation of Jobs.

use longshore_model::CauseList;
use serde_json::Value;

use super::{meta, pod};
use crate::{
    cause::{Cause, not_negative, one_of},
    json::{self, Object},
};

/// Validates a Job.
pub(crate) fn object(job: &Object, causes: &mut CauseList) {
    if let Some(Value::Object(own)) = job.get("spec") {
        generated(job, own, causes);
        spec(own, "spec", causes);
        selector(own, causes);
    }
}

/// Without `manualSelector`, the server generates the selector and the matching labels. Labels of
/// the user must not contradict them.
fn generated(job: &Object, spec: &Object, causes: &mut CauseList) {
    let manual = json::at(spec, "manualSelector").and_then(Value::as_bool);
    let Some(selector) = spec.get("selector").filter(|_| manual != Some(true)) else {
        return;
    };
    let (uid, name) = (
        json::text(job, "metadata.uid"),
        json::text(job, "metadata.name"),
    );
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = json::at(spec, "template.metadata.labels");
    for (key, value) in expected {
        let field = format!("spec.template.metadata.labels[{key}]");
        let detail = format!("must be '{value}'");
        match labels.and_then(|labels| labels.get(key)) {
            None => causes.push(Cause::required(&field, &detail)),
            Some(own) if own != value => {
                let labels = labels.cloned().unwrap_or_default();
                causes.push(Cause::invalid(&field, labels, &detail));
            }
            Some(_) => {}
        }
    }
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let ours = wanted.into_iter().flatten().all(|(key, value)| {
        expected
            .iter()
            .any(|(own, expected)| own == key && value == expected)
    });
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    if !ours || expressions.is_some_and(|expressions| !expressions.is_empty()) {
        let detail = "`selector` not auto-generated";
        causes.push(Cause::invalid("spec.selector", selector.clone(), detail));
    }
}

/// Validates the spec of a Job or of a Job template.
pub(super) fn spec(spec: &Object, path: &str, causes: &mut CauseList) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(spec, field, &format!("{path}.{field}"), causes);
    }
    for (field, words) in [
        ("completionMode", ["Indexed", "NonIndexed"]),
        ("podReplacementPolicy", ["Failed", "TerminatingOrFailed"]),
    ] {
        if spec.contains_key(field) {
            one_of(spec, field, &format!("{path}.{field}"), &words, causes);
        }
    }
    let indexed = json::text(spec, "completionMode") == "Indexed";
    if indexed && json::number(spec, "completions").is_none() {
        let detail = "when completion mode is Indexed";
        causes.push(Cause::required(&format!("{path}.completions"), detail));
    }
    if !indexed {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = json::number(spec, field) {
                let detail = "requires indexed completion mode";
                causes.push(Cause::invalid(&format!("{path}.{field}"), number, detail));
            }
        }
    }
    let Some(Value::Object(template)) = spec.get("template") else {
        return;
    };
    let labels = json::at(template, "metadata.labels");
    meta::labels(&format!("{path}.template.labels"), labels, causes);
    if let Some(Value::Object(template)) = template.get("spec") {
        let path = format!("{path}.template.spec");
        pod::spec(template, &path, causes);
        let field = format!("{path}.restartPolicy");
        match json::text(template, "restartPolicy") {
            "OnFailure" | "Never" => {}
            "" | "Always" => causes.push(Cause::required(
                &field,
                "valid values: \"OnFailure\", \"Never\"",
            )),
            other => causes.push(Cause::not_supported(&field, other, &["OnFailure", "Never"])),
        }
    }
}

/// The selector must match the pod template.
fn selector(spec: &Object, causes: &mut CauseList) {
    let wanted = json::at(spec, "selector.matchLabels").and_then(Value::as_object);
    let labels = json::at(spec, "template.metadata.labels").and_then(Value::as_object);
    let selects = wanted.is_none_or(|wanted| {
        wanted
            .iter()
            .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    });
    if spec.get("selector").is_none() {
        causes.push(Cause::required("spec.selector", ""));
    } else if !selects {
        let labels = labels.cloned().map_or(Value::Null, Value::Object);
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            labels,
            "`selector` does not match template `labels`",
        ));
    }
}

/// Validates a change of a Job.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (before.get("spec"), after.get("spec"))
    else {
        return;
    };
    for field in [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
        "manualSelector",
    ] {
        if old.get(field) != new.get(field) {
            causes.push(Cause::immutable(&format!("spec.{field}"), new.get(field)));
        }
    }
    // An Indexed Job may be scaled if completions and parallelism change together.
    let elastic = json::text(new, "completionMode") == "Indexed"
        && new.get("completions") == new.get("parallelism");
    if old.get("completions") != new.get("completions") && !elastic {
        causes.push(Cause::immutable("spec.completions", new.get("completions")));
    }
    if has_mutable_template(before) {
        suspended_template(old, new, causes);
    } else if old.get("template") != new.get("template") {
        causes.push(Cause::immutable("spec.template", new.get("template")));
    }
}

/// Returns true if a Job is suspended and has no pods that were created from its template.
fn has_mutable_template(job: &Object) -> bool {
    let conditions = json::at(job, "status.conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let is_suspended = json::at(job, "spec.suspend") == Some(&Value::Bool(true));
    let has_stopped = json::at(job, "status.startTime").is_none()
        || conditions
            .any(|condition| condition["type"] == "Suspended" && condition["status"] == "True");
    let active = json::number(job, "status.active").unwrap_or_default();
    is_suspended && has_stopped && active == 0
}

/// In the template of a suspended Job, the metadata, the scheduling constraints and the resources
/// of containers may change.
fn suspended_template(old: &Object, new: &Object, causes: &mut CauseList) {
    let spec = |job| json::at(job, "template.spec").and_then(Value::as_object);
    let (Some(was), Some(is)) = (spec(old), spec(new)) else {
        if old.get("template") != new.get("template") {
            causes.push(Cause::immutable("spec.template", new.get("template")));
        }
        return;
    };
    let mut was = was.clone();
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        json::copy(is, &mut was, field);
    }
    copy_node_affinity(is, &mut was);
    for list in ["containers", "initContainers"] {
        if json::items(&was, list).count() != json::items(is, list).count() {
            continue;
        }
        for (was, is) in json::items_mut(&mut was, list).zip(json::items(is, list)) {
            if json::text(was, "name") == json::text(is, "name") {
                json::copy(is, was, "resources");
            }
        }
    }
    if was != *is {
        let value = json::at(new, "template.spec");
        causes.push(Cause::immutable("spec.template.spec", value));
    }
}

/// Copies the node affinity. The pod affinity stays.
fn copy_node_affinity(from: &Object, to: &mut Object) {
    let empty = Object::new();
    let of = |spec: &Object| spec.get("affinity").and_then(Value::as_object).cloned();
    let (new, old) = (of(from), of(to));
    let mut affinity = old.clone().unwrap_or_default();
    json::copy(
        new.as_ref().unwrap_or(&empty),
        &mut affinity,
        "nodeAffinity",
    );
    match (new, affinity.is_empty()) {
        (None, true) => drop(to.remove("affinity")),
        _ => drop(to.insert("affinity".into(), affinity.into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn users_cannot_set_generated_labels_and_selectors() {
        let problems = |labels: Value, selector: Value| {
            let job = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {
                "selector": {"matchLabels": selector}, "template": {"metadata": {"labels": labels}},
            }});
            let (job, mut causes) = (job.as_object().unwrap().clone(), CauseList::new());
            let spec = job["spec"].as_object().unwrap().clone();
            generated(&job, &spec, &mut causes);
            let reported = causes
                .iter()
                .map(|cause| format!("{}: {}", cause.field, cause.message));
            reported.collect::<Vec<String>>()
        };
        let labels = json!({
            "controller-uid": "u", "batch.kubernetes.io/controller-uid": "u",
            "job-name": "a", "batch.kubernetes.io/job-name": "a", "x": "y",
        });
        let selector = json!({"batch.kubernetes.io/controller-uid": "u"});
        assert_eq!(problems(labels.clone(), selector.clone()), [""; 0]);
        let mut of_another = labels.clone();
        of_another["job-name"] = "b".into();
        let reported = problems(of_another, selector);
        assert!(
            reported[0].starts_with("spec.template.metadata.labels[job-name]: Invalid value: ")
        );
        assert!(
            reported[0].ends_with(": must be 'a'") && reported.len() == 1,
            "{reported:?}"
        );
        let reported = problems(labels, json!({"x": "y"}));
        assert!(
            reported[0].ends_with("`selector` not auto-generated"),
            "{reported:?}"
        );
    }
}
