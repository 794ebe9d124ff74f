//! Validation of StorageVersionMigrations.

use longshore_model::CauseList;

use super::{
    conditions,
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

pub(crate) fn object(object: &Object, causes: &mut CauseList) {
    let wanted = FieldValue::field(object, "spec").get("resource");
    let (group, resource) = (wanted.get("group"), wanted.get("resource"));
    if resource.text().is_empty() {
        Causes(causes).required(&resource, "resource is required to be set");
    } else {
        meta::service_label(&resource.path, resource.text(), causes);
    }
    if !group.text().is_empty() {
        Causes(causes).subdomain(&group);
    }
}

pub(crate) fn status(before: &Object, after: &Object, causes: &mut CauseList) {
    let status = FieldValue::field(after, "status");
    let version = status.get("resourceVersion");
    if !version.text().is_empty() && !is_version(version.text()) {
        let detail = format!("resource version is not well formed: {}", version.text());
        Causes(causes).invalid(&version, &detail);
    }
    let conditions = status.get("conditions");
    conditions::check(&conditions, causes);
    let known = json::text(before, "status.resourceVersion");
    if !known.is_empty() && known != version.text() {
        let detail = "field is immutable";
        causes.push(Cause::invalid(&version.path, version.text(), detail));
    }
    let causes = &mut Causes(causes);
    let (succeeded, failed) = ("Succeeded", "Failed");
    if is_true(after, succeeded) && is_true(after, failed) {
        let detail = "Both success and failed conditions cannot be true at the same time";
        causes.invalid(&conditions, detail);
    }
    for (kind, name) in [(succeeded, "Success"), (failed, "Failed")] {
        if is_true(before, kind) && !is_true(after, kind) {
            let detail = format!("{name} condition cannot be set to false once it is true");
            causes.invalid(&conditions, &detail);
        }
    }
}

/// Returns true if a resource version is a number without leading zeros.
fn is_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_true(object: &Object, kind: &str) -> bool {
    let conditions = FieldValue::field(object, "status").get("conditions");
    let found = conditions
        .items()
        .find(|found| found.get("type").text() == kind);
    found.is_some_and(|condition| condition.get("status").text() == "True")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use longshore_model::StatusCause;

    use super::*;

    fn fields(causes: &[StatusCause]) -> Vec<String> {
        let shown = causes.iter();
        shown
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    #[test]
    fn the_resource_has_a_valid_name() {
        for (resource, expected) in [
            (json!({"resource": "foo"}), ""),
            (json!({"group": "example.com", "resource": "ships"}), ""),
            (
                json!({"group": "a"}),
                "spec.resource.resource: Required value: resource is required to be set",
            ),
            (
                json!({"resource": "A"}),
                "spec.resource.resource: Invalid value: \"A\"",
            ),
            (
                json!({"group": "A", "resource": "a"}),
                "spec.resource.group: Invalid value: \"A\"",
            ),
        ] {
            let mut causes = CauseList::new();
            let migration = json!({"spec": {"resource": resource}});
            object(migration.as_object().unwrap(), &mut causes);
            let found = fields(&causes).join(", ");
            assert!(found.starts_with(expected), "{found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
        }
    }

    fn with(version: &str, kinds: &[(&str, &str)]) -> Value {
        let condition = |(kind, status): &(&str, &str)| {
            json!({"type": kind, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions: Vec<Value> = kinds.iter().map(condition).collect();
        json!({"status": {"resourceVersion": version, "conditions": conditions}})
    }

    #[test]
    fn a_migration_ends_once() {
        let (done, failed) = (("Succeeded", "True"), ("Failed", "True"));
        for (before, after, expected) in [
            (with("", &[]), with("5", &[done]), 0),
            (with("5", &[]), with("6", &[]), 1),
            (with("", &[]), with("05", &[]), 1),
            (with("5", &[done]), with("5", &[]), 1),
            (with("5", &[failed]), with("5", &[("Failed", "False")]), 1),
            (with("5", &[]), with("5", &[done, failed]), 1),
        ] {
            let mut causes = CauseList::new();
            let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
            status(before, after, &mut causes);
            assert_eq!(causes.len(), expected, "{:?}", fields(&causes));
        }
    }
}
