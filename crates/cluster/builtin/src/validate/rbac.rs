//! Validation of roles and role bindings.

use longshore_model::CauseList;

use super::{
    field_value::{Causes, FieldValue},
    meta, selector,
};
use crate::{cause::Cause, json::Object};

const GROUP: &str = "rbac.authorization.k8s.io";

fn rules(object: &Object, namespaced: bool, causes: &mut Causes<'_>) {
    for rule in FieldValue::field(object, "rules").items() {
        if rule.get("verbs").len() == 0 {
            causes.required(&rule.get("verbs"), "");
        }
        let urls = rule.get("nonResourceURLs");
        let parts = ["apiGroups", "resources", "resourceNames"].map(|part| rule.get(part));
        if urls.len() > 0 {
            if namespaced {
                causes.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if parts.iter().any(|part| part.len() > 0) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                causes.invalid(&urls, detail);
            }
            continue;
        }
        for (part, word) in parts.iter().zip(["api group", "resource"]) {
            if part.len() == 0 {
                causes.required(
                    part,
                    &format!("resource rules must supply at least one {word}"),
                );
            }
        }
    }
}

pub(crate) fn role(object: &Object, causes: &mut CauseList) {
    rules(object, true, &mut Causes(causes));
}

pub(crate) fn cluster_role(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    rules(object, false, causes);
    let aggregation = FieldValue::field(object, "aggregationRule");
    let selectors = aggregation.get("clusterRoleSelectors");
    if aggregation.is_set() && selectors.len() == 0 {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.required(&selectors, detail);
    }
    selectors
        .items()
        .for_each(|one| selector::check(&one, causes));
}

/// Validates a binding; `kinds` are the kinds of roles that it may reference.
pub(crate) fn binding(object: &Object, kinds: &[&str], causes: &mut CauseList) {
    let namespaced = kinds.len() > 1;
    let causes = &mut Causes(causes);
    let role = FieldValue::field(object, "roleRef");
    causes.one_of(&role.get("apiGroup"), &[GROUP]);
    causes.one_of(&role.get("kind"), kinds);
    if role.get("name").text().is_empty() {
        causes.required(&role.get("name"), "");
    } else {
        meta::path_segment(&role.get("name").path, role.get("name").text(), causes.0);
    }
    for subject in FieldValue::field(object, "subjects").items() {
        let (name, group) = (subject.get("name"), subject.get("apiGroup"));
        if name.text().is_empty() {
            causes.required(&name, "");
        }
        match subject.get("kind").text() {
            "ServiceAccount" => {
                if !name.text().is_empty() {
                    causes.subdomain(&name);
                }
                if !group.text().is_empty() {
                    causes.not_supported(&group, &[""]);
                }
                if subject.get("namespace").text().is_empty() && !namespaced {
                    causes.required(&subject.get("namespace"), "");
                }
            }
            "User" | "Group" => causes.one_of(&group, &[GROUP]),
            _ => causes.not_supported(&subject.get("kind"), &["ServiceAccount", "User", "Group"]),
        }
    }
}

pub(crate) fn binding_change(before: &Object, after: &Object, causes: &mut CauseList) {
    if before.get("roleRef") != after.get("roleRef") {
        let role = after.get("roleRef").cloned().unwrap_or_default();
        causes.push(Cause::invalid("roleRef", role, "field is immutable"));
    }
}
