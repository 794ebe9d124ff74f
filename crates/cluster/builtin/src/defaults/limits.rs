//! Defaults of LimitRanges, PriorityClasses, roles and bindings.

use serde_json::Value;

use crate::json::{self, Object};

const RBAC: &str = "rbac.authorization.k8s.io";

/// For containers: a missing limit defaults to the maximum; a missing request
/// defaults to the limit or to the minimum.
pub(crate) fn limit_range(range: &mut Object) {
    for item in json::items_mut(json::child(range, "spec"), "limits") {
        if json::text(item, "type") != "Container" {
            continue;
        }
        for (from, to) in [
            ("max", "default"),
            ("default", "defaultRequest"),
            ("min", "defaultRequest"),
        ] {
            let Some(Value::Object(amounts)) = item.get(from).cloned() else {
                continue;
            };
            let target = json::child(item, to);
            for (name, amount) in amounts {
                target.entry(name).or_insert(amount);
            }
        }
    }
}

pub(crate) fn priority_class(class: &mut Object) {
    json::default_text(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// Sets the default API groups of the role reference and the subjects.
pub(crate) fn binding(binding: &mut Object) {
    json::default_text(json::child(binding, "roleRef"), "apiGroup", RBAC);
    for subject in json::items_mut(binding, "subjects") {
        if matches!(json::text(subject, "kind"), "User" | "Group") {
            json::default_text(subject, "apiGroup", RBAC);
        }
    }
}
