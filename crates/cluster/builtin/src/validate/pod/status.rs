//! Validation of a pod's status.

use std::net::IpAddr;

use longshore_model::CauseList;
use serde_json::Value;

use crate::{
    cause::Cause,
    json::{self, Object},
    validate::{address, meta},
};

/// Validates a change of a pod's status.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    conditions(after, causes);
    nomination(before, after, causes);
    generation(after, "status.observedGeneration", "status", causes);
    let class = |pod| json::text(pod, "status.qosClass");
    if class(before) != class(after) {
        let new = json::at(after, "status.qosClass");
        causes.push(Cause::immutable("status.qosClass", new));
    }
    for (list, specs) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", "ephemeralContainers"),
    ] {
        containers(before, after, (list, specs), causes);
    }
    for list in ["podIPs", "hostIPs"] {
        addresses(before, after, list, causes);
    }
}

fn status(pod: &Object) -> Option<&Object> {
    pod.get("status").and_then(Value::as_object)
}

fn listed<'a>(pod: &'a Object, list: &'a str) -> impl Iterator<Item = &'a Object> {
    let status = status(pod).into_iter();
    status.flat_map(move |status| json::items(status, list))
}

fn generation(object: &Object, field: &str, path: &str, causes: &mut CauseList) {
    if let Some(negative) = json::number(object, field).filter(|number| *number < 0) {
        let detail = "must be a non-negative integer";
        causes.push(Cause::invalid(
            &format!("{path}.observedGeneration"),
            negative,
            detail,
        ));
    }
}

fn conditions(pod: &Object, causes: &mut CauseList) {
    for (index, condition) in listed(pod, "conditions").enumerate() {
        let path = format!("status.conditions[{index}]");
        generation(condition, "observedGeneration", &path, causes);
        let kind = json::text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            meta::qualified(&format!("{path}.Type"), kind, causes);
        }
    }
}

/// A nominated node can be set only while the pod is not assigned to a node.
fn nomination(before: &Object, after: &Object, causes: &mut CauseList) {
    const FIELD: &str = "status.nominatedNodeName";
    let name = json::text(after, FIELD);
    if name.is_empty() || name == json::text(before, FIELD) {
        return;
    }
    meta::subdomain(FIELD, name, causes);
    if !json::text(before, "spec.nodeName").is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        causes.push(Cause::forbidden(FIELD, detail));
    }
}

/// A terminated container that is not restarted must keep its state.
fn containers(
    before: &Object,
    after: &Object,
    (list, specs): (&str, &str),
    causes: &mut CauseList,
) {
    for (index, old) in listed(before, list).enumerate() {
        let Some(ended) = json::at(old, "state.terminated") else {
            continue;
        };
        let name = json::text(old, "name");
        let starts = listed(after, list)
            .find(|new| json::text(new, "name") == name)
            .is_some_and(|new| json::at(new, "state.terminated").is_none());
        if starts && !may_start_again(before, specs, name, &ended["exitCode"]) {
            let detail = "may not be transitioned to non-terminated state";
            causes.push(Cause::forbidden(
                &format!("status.{list}[{index}].state"),
                detail,
            ));
        }
    }
}

fn may_start_again(pod: &Object, specs: &str, name: &str, exit_code: &Value) -> bool {
    let spec = pod.get("spec").and_then(Value::as_object);
    let found = spec.and_then(|spec| {
        let mut all = json::items(spec, specs);
        Some((spec, all.find(|one| json::text(one, "name") == name)?))
    });
    let Some((spec, container)) = found.filter(|_| specs != "ephemeralContainers") else {
        return false;
    };
    if container.contains_key("restartPolicyRules") {
        return true;
    }
    let policy = match json::text(container, "restartPolicy") {
        "" => json::text(spec, "restartPolicy"),
        own => own,
    };
    match policy {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}

/// At most one address per IP family. Existing addresses may remain unchanged.
fn addresses(before: &Object, after: &Object, list: &str, causes: &mut CauseList) {
    let path = format!("status.{list}");
    let own = |pod| listed(pod, list).map(|one| json::text(one, "ip"));
    for (index, text) in own(after).enumerate() {
        let known = own(before).any(|old| old == text);
        if let Some(problem) = address::problem(text).filter(|_| !known) {
            causes.push(Cause::invalid(&format!("{path}[{index}]"), text, problem));
        }
    }
    let families: Vec<_> = own(after)
        .filter_map(|address| Some(address.parse::<IpAddr>().ok()?.is_ipv4()))
        .collect();
    let several = own(after).count();
    if several > 1 && (several > 2 || families.first() == families.get(1)) {
        let all = json::at(after, &path).cloned().unwrap_or_default();
        let detail = "may specify no more than one IP for each IP family";
        causes.push(Cause::invalid(&path, all, detail));
    }
}
