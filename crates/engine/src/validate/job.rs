//! Rules of Jobs.

use longshore_model::StatusCause;
use serde_json::Value;

use super::{
    Cause,
    cause::{not_negative, one_of},
    meta, pod,
};
use crate::json::{self, Object};

/// What is wrong with a Job.
pub(super) fn object(job: &Object, causes: &mut Vec<StatusCause>) {
    if let Some(Value::Object(own)) = job.get("spec") {
        spec(own, "spec", causes);
        selector(own, causes);
    }
}

/// What is wrong with the spec of a Job or of a template of Jobs.
pub(super) fn spec(spec: &Object, path: &str, causes: &mut Vec<StatusCause>) {
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

/// The selector must select the template; without `manualSelector` it is made
/// by the server alone.
fn selector(spec: &Object, causes: &mut Vec<StatusCause>) {
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
    let manual = json::at(spec, "manualSelector")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    let generated = wanted.is_some_and(|wanted| {
        wanted.len() == 1
            && (wanted.contains_key("batch.kubernetes.io/controller-uid")
                || wanted.contains_key("controller-uid"))
    }) && json::at(spec, "selector.matchExpressions").is_none();
    if !manual && selects && !generated && spec.get("selector").is_some() {
        let selector = spec.get("selector").cloned().unwrap_or_default();
        causes.push(Cause::invalid(
            "spec.selector",
            selector,
            "`selector` not auto-generated",
        ));
    }
}

/// What is wrong with a change.
pub(super) fn change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
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
    // An Indexed Job may grow and shrink, all its pods at once.
    let elastic = json::text(new, "completionMode") == "Indexed"
        && new.get("completions") == new.get("parallelism");
    if old.get("completions") != new.get("completions") && !elastic {
        causes.push(Cause::immutable("spec.completions", new.get("completions")));
    }
    // A Job that has not begun may still be moved elsewhere.
    let waiting = json::at(old, "suspend") == Some(&Value::Bool(true))
        && json::at(before, "status.startTime").is_none();
    let (mut was, is) = (old.get("template").cloned(), new.get("template"));
    if let (true, Some(was), Some(is)) = (waiting, was.as_mut(), is) {
        let placement = ["nodeSelector", "tolerations", "affinity", "schedulingGates"];
        if let (Some(Value::Object(was)), Some(Value::Object(is))) =
            (was.get_mut("spec"), is.get("spec"))
        {
            placement
                .iter()
                .for_each(|field| json::copy(is, was, field));
        }
        if let (Some(Value::Object(was)), Some(Value::Object(is))) =
            (was.get_mut("metadata"), is.get("metadata"))
        {
            ["labels", "annotations"]
                .iter()
                .for_each(|field| json::copy(is, was, field));
        }
    }
    if was.as_ref() != is {
        causes.push(Cause::immutable("spec.template", is));
    }
}
