//! Validation of Jobs.

use longshore_model::StatusCause;
use serde_json::Value;

use super::{meta, pod};
use crate::{
    cause::{Cause, not_negative, one_of},
    json::{self, Object},
};

/// Validates a Job.
pub(crate) fn object(job: &Object, causes: &mut Vec<StatusCause>) {
    if let Some(Value::Object(own)) = job.get("spec") {
        generated(job, own, causes);
        spec(own, "spec", causes);
        selector(own, causes);
    }
}

/// Without `manualSelector`, the server generates the selector and the matching
/// labels. Labels of the user must not contradict them.
fn generated(job: &Object, spec: &Object, causes: &mut Vec<StatusCause>) {
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

/// The selector must match the pod template.
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
}

/// Validates a change of a Job.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
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
    // An Indexed Job may be scaled if completions and parallelism change
    // together.
    let elastic = json::text(new, "completionMode") == "Indexed"
        && new.get("completions") == new.get("parallelism");
    if old.get("completions") != new.get("completions") && !elastic {
        causes.push(Cause::immutable("spec.completions", new.get("completions")));
    }
    // The scheduling constraints of a suspended Job that has never started may
    // change.
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
            let (job, mut causes) = (job.as_object().unwrap().clone(), Vec::new());
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
