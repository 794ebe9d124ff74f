//! Validation of LimitRanges.

use std::collections::HashSet;

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{cause::Cause, json::Object};

/// Amounts of resources whose names have no prefix.
const AMOUNTS: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Numbers of objects.
pub(super) const COUNTS: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources of containers whose names have no prefix.
const CONTAINER: &[&str] = &["cpu", "memory", "ephemeral-storage"];

pub(super) fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// Validates a resource name.
pub(super) fn resource_name(path: &str, name: &str, causes: &mut CauseList) {
    let before = causes.len();
    meta::qualified(path, name, causes);
    if causes.len() == before && !name.contains('/') && !is_standard(name) && !is_huge_pages(name) {
        let detail = "must be a standard resource type or fully qualified";
        causes.push(Cause::invalid(path, name, detail));
    }
}

/// Returns true if a resource is a standard resource.
pub(super) fn is_standard(name: &str) -> bool {
    AMOUNTS.contains(&name) || COUNTS.contains(&name)
}

/// Validates the name of a container resource.
pub(super) fn container_resource(path: &str, name: &str, causes: &mut CauseList) {
    resource_name(path, name, causes);
    if !name.contains('/') && !CONTAINER.contains(&name) && !is_huge_pages(name) {
        let detail = "must be a standard resource for containers";
        causes.push(Cause::invalid(path, name, detail));
    }
}

/// Checks the order of two quantities of a resource if both are set.
fn ordered(
    low: &FieldValue<'_>,
    high: &FieldValue<'_>,
    words: [&str; 2],
    place: &FieldValue<'_>,
    resource: &str,
    causes: &mut Causes<'_>,
) {
    let (low, high) = (low.get(resource), high.get(resource));
    let (Some(small), Some(great)) = (low.quantity(), high.quantity()) else {
        return;
    };
    if small > great {
        let path = format!("{}[{resource}]", place.path);
        let detail = format!(
            "{} value {} is greater than {} value {}",
            words[0],
            low.text(),
            words[1],
            high.text()
        );
        // As in Kubernetes, the value in the message does not always belong to the path.
        let shown = match (words[0], words[1]) {
            ("min", "default request") | ("default", "max") => high,
            _ => low,
        };
        causes.0.push(Cause::invalid(&path, shown.value(), &detail));
    }
}

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let mut kinds = HashSet::new();
    for limit in FieldValue::field(object, "spec").get("limits").items() {
        let kind = limit.get("type");
        if !matches!(kind.text(), "Container" | "Pod" | "PersistentVolumeClaim") {
            let before = causes.0.len();
            causes.qualified(&kind);
            if causes.0.len() == before && !kind.text().contains('/') {
                causes.invalid(&kind, "must be a standard limit type or fully qualified");
            }
        }
        if !kinds.insert(kind.text()) {
            causes.duplicate(&kind);
        }
        item(&limit, kind.text(), causes);
    }
}

fn item(limit: &FieldValue<'_>, kind: &str, causes: &mut Causes<'_>) {
    let [max, min, default, request, ratio] = [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ]
    .map(|field| limit.get(field));
    let mut resources: Vec<&str> = Vec::new();
    for list in [&max, &min, &default, &request, &ratio] {
        for (name, at) in list.entries() {
            resources.push(name);
            if kind == "Container" {
                container_resource(&at.path, name, causes.0);
            } else {
                resource_name(&at.path, name, causes.0);
            }
        }
    }
    if kind == "Pod" {
        for list in [&default, &request] {
            if list.len() > 0 {
                causes.forbidden(list, "may not be specified when `type` is 'Pod'");
            }
        }
    }
    if kind == "PersistentVolumeClaim"
        && !min.get("storage").is_set()
        && !max.get("storage").is_set()
    {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        causes.required(&limit.get("limits"), detail);
    }
    resources.sort_unstable();
    resources.dedup();
    for resource in resources {
        ordered(&min, &max, ["min", "max"], &min, resource, causes);
        if kind != "Pod" {
            ordered(
                &min,
                &request,
                ["min", "default request"],
                &request,
                resource,
                causes,
            );
            ordered(
                &request,
                &max,
                ["default request", "max"],
                &request,
                resource,
                causes,
            );
            ordered(
                &request,
                &default,
                ["default request", "default limit"],
                &request,
                resource,
                causes,
            );
            ordered(
                &min,
                &default,
                ["min", "default"],
                &default,
                resource,
                causes,
            );
            ordered(
                &default,
                &max,
                ["default", "max"],
                &default,
                resource,
                causes,
            );
        }
        let own = ratio.get(resource);
        if own.quantity().is_some_and(|quantity| quantity < 1.0) {
            let path = format!("{}[{resource}]", ratio.path);
            let detail = format!("ratio {} is less than 1", own.text());
            causes.0.push(Cause::invalid(&path, own.value(), &detail));
        }
    }
}
