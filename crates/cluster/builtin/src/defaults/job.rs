//! Defaults of Jobs.

use serde_json::Value;

use super::pod;
use crate::json::{self, Object};

/// The label that links a Job's pods to the Job by uid.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Generates labels and selector from the uid and the name.
pub(crate) fn on_create(job: &mut Object) {
    let manual = json::at(job, "spec.manualSelector").and_then(Value::as_bool);
    if manual == Some(true) {
        return;
    }
    let (uid, name) = (
        json::text(job, "metadata.uid").to_owned(),
        json::text(job, "metadata.name").to_owned(),
    );
    let own = json::at(job, "metadata.labels")
        .and_then(Value::as_object)
        .cloned();
    let spec = json::child(job, "spec");
    let template = json::child(json::child(spec, "template"), "metadata");
    let labels = json::child(template, "labels");
    // Labels that were copied from the template also get the generated labels.
    let taken = own.as_ref() == Some(&*labels);
    for (key, value) in [
        (CONTROLLER_UID, &uid),
        ("controller-uid", &uid),
        (JOB_NAME, &name),
        ("job-name", &name),
    ] {
        // A conflicting user label is kept here; validation rejects it later.
        labels.entry(key).or_insert_with(|| value.clone().into());
    }
    let selector = json::child(json::child(spec, "selector"), "matchLabels");
    selector.entry(CONTROLLER_UID).or_insert_with(|| uid.into());
    if taken {
        let labels = json::at(spec, "template.metadata.labels").cloned();
        let labels = labels.unwrap_or_default();
        json::child(job, "metadata").insert("labels".into(), labels);
    }
}

/// Sets the defaults of a Job.
pub(crate) fn fill(job: &mut Object) {
    let spec = json::child(job, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    json::default(spec, "parallelism", 1);
    let retries = if spec.contains_key("backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    json::default(spec, "backoffLimit", retries);
    json::default_text(spec, "completionMode", "NonIndexed");
    json::default(spec, "suspend", false);
    json::default(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    json::default_text(spec, "podReplacementPolicy", replacement);
    if let Some(Value::Object(policy)) = spec.get_mut("podFailurePolicy") {
        for rule in json::items_mut(policy, "rules") {
            for condition in json::items_mut(rule, "onPodConditions") {
                json::default_text(condition, "status", "True");
            }
        }
    }
    let template = json::child(spec, "template");
    json::child(template, "metadata");
    pod::fill_spec(json::child(template, "spec"));
    json::child(job, "status");
    let labels = json::at(job, "spec.template.metadata.labels").cloned();
    if let (Some(Value::Object(labels)), None) = (labels, json::at(job, "metadata.labels"))
        && !labels.is_empty()
    {
        json::child(job, "metadata").insert("labels".into(), Value::Object(labels));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn created(spec: Value) -> Value {
        let job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": spec});
        let mut job = job.as_object().unwrap().clone();
        on_create(&mut job);
        fill(&mut job);
        job.into()
    }

    #[test]
    fn selector_and_labels_are_generated_from_the_uid() {
        let job = created(json!({"template": {"metadata": {"labels": {"app": "x"}}}}));
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {CONTROLLER_UID: "u"}})
        );
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"],
            json!({"app": "x", CONTROLLER_UID: "u", "controller-uid": "u", JOB_NAME: "j", "job-name": "j"})
        );
        assert_eq!(
            job["metadata"]["labels"],
            job["spec"]["template"]["metadata"]["labels"]
        );
    }

    #[test]
    fn a_manual_selector_is_unchanged() {
        let job = created(json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}}));
        assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"a": "b"}}));
        assert_eq!(job["spec"]["template"]["metadata"], json!({}));
    }

    #[test]
    fn completions_default_only_when_parallelism_is_unset_too() {
        let plain = created(json!({}));
        assert_eq!(
            (&plain["spec"]["completions"], &plain["spec"]["parallelism"]),
            (&json!(1), &json!(1))
        );
        let queue = created(json!({"parallelism": 3}));
        assert_eq!(
            (&queue["spec"]["completions"], &queue["spec"]["parallelism"]),
            (&Value::Null, &json!(3))
        );
        assert_eq!(plain["spec"]["backoffLimit"], 6);
        assert_eq!(plain["spec"]["completionMode"], "NonIndexed");
        assert_eq!(plain["spec"]["suspend"], false);
        assert_eq!(plain["spec"]["podReplacementPolicy"], "TerminatingOrFailed");
        assert_eq!(
            created(json!({"backoffLimitPerIndex": 1}))["spec"]["backoffLimit"],
            i32::MAX
        );
    }
}
