//! Validation of APIServices and RuntimeClasses.

use std::collections::HashSet;

use longshore_model::CauseList;
use serde_json::json;

use super::{
    field_value::{Causes, FieldValue},
    limit_range, meta, pod, webhook,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

pub(crate) fn api_service(object: &Object, causes: &mut CauseList) {
    let name = json::text(object, "metadata.name");
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let (group, version) = (spec.get("group"), spec.get("version"));
    let wanted = format!("{}.{}", version.text(), group.text());
    if name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        causes
            .0
            .push(Cause::invalid("metadata.name", name, &detail));
    }
    if !group.text().is_empty() {
        causes.subdomain(&group);
    } else if version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        causes.required(&group, detail);
    }
    meta::service_label(&version.path, version.text(), causes.0);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.get(field);
        if !(1..=most).contains(&priority.number().unwrap_or_default()) {
            let detail = format!("must be positive and less than {most}");
            causes.invalid(&priority, &detail);
        }
    }
    let (service, bundle) = (spec.get("service"), spec.get("caBundle"));
    let insecure = spec.get("insecureSkipTLSVerify");
    let has_bundle = !bundle.text().is_empty();
    if !service.is_set() {
        if has_bundle {
            let shown = format!("{} bytes", bytes(bundle.text()));
            let detail = "local APIServices may not have a caBundle";
            causes.0.push(Cause::invalid(&bundle.path, shown, detail));
        }
        if insecure.is_true() {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            causes.invalid(&insecure, detail);
        }
        return;
    }
    for field in ["namespace", "name"] {
        if service.get(field).text().is_empty() {
            causes.required(&service.get(field), "");
        }
    }
    webhook::port(&service.get("port"), causes);
    if insecure.is_true() && has_bundle {
        causes.invalid(&insecure, "may not be true if caBundle is present");
    }
}

/// The decoded length of a base64 text.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

pub(crate) fn api_service_status(object: &Object, causes: &mut CauseList) {
    let conditions = FieldValue::field(object, "status").get("conditions");
    for condition in conditions.items() {
        let status = condition.get("status");
        Causes(causes).one_of(&status, &["True", "False", "Unknown"]);
    }
}

pub(crate) fn runtime_class(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let handler = FieldValue::field(object, "handler");
    if handler.text().is_empty() {
        causes.required(&handler, "");
    } else {
        causes.label(&handler);
    }
    let fixed = FieldValue::field(object, "overhead").get("podFixed");
    for (resource, quantity) in fixed.entries() {
        let path = format!("overhead.limits[{resource}]");
        limit_range::container_resource(&path, resource, causes.0);
        if quantity.quantity().is_some_and(|quantity| quantity < 0.0) {
            let detail = "must be greater than or equal to 0";
            causes.invalid(&quantity.with_path(path), detail);
        }
    }
    let scheduling = FieldValue::field(object, "scheduling");
    causes.labels(&scheduling.get("nodeSelector"));
    let mut seen = HashSet::new();
    for one in scheduling.get("tolerations").items() {
        pod::toleration(&one, causes);
        let text = |field: &str| one.get(field).text().to_owned();
        let key = ["key", "operator", "value", "effect"].map(text);
        if !seen.insert(key.clone()) {
            let [key, operator, value, effect] = key;
            let seconds = one.get("tolerationSeconds").value();
            let shown = json!({
                "Key": key, "Operator": operator, "Value": value, "Effect": effect,
                "TolerationSeconds": seconds,
            });
            causes.0.push(Cause::duplicate(&one.path, shown));
        }
    }
}
