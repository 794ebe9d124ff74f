//! Validation of the rules that select requests for a webhook.

use std::collections::HashSet;

use crate::validate::field_value::{Causes, FieldValue};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// A list with a wildcard must not contain other entries.
fn alone(list: &FieldValue<'_>, what: &str, causes: &mut Causes<'_>) {
    if list.len() == 0 {
        causes.required(list, "");
    } else if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        causes.invalid(list, &detail);
    }
}

pub(in crate::validate) fn rule(rule: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let operations = rule.get("operations");
    alone(&operations, "operations", causes);
    operations
        .items()
        .for_each(|one| causes.one_of(&one, OPERATIONS));
    alone(&rule.get("apiGroups"), "API groups", causes);
    let versions = rule.get("apiVersions");
    alone(&versions, "API versions", causes);
    for version in versions.items().filter(|one| one.text().is_empty()) {
        causes.required(&version, "");
    }
    resources(&rule.get("resources"), causes);
    let scope = rule.get("scope");
    causes.one_of_if_set(&scope, &["*", "Cluster", "Namespaced"]);
}

fn resources(list: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if list.len() == 0 {
        causes.required(list, "");
    }
    let (mut resources_with_wildcard, mut subresources_of_wildcard) =
        (HashSet::new(), HashSet::new());
    let (mut everything, mut all, mut bare) = (false, false, false);
    for one in list.items() {
        let text = one.text();
        if text.is_empty() {
            causes.required(&one, "");
            continue;
        }
        everything |= text == "*/*";
        all |= text == "*";
        let Some((resource, part)) = text.split_once('/') else {
            bare = text != "*";
            continue;
        };
        if resources_with_wildcard.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            causes.invalid(&one, &detail);
        }
        if subresources_of_wildcard.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            causes.invalid(&one, &detail);
        }
        if part == "*" {
            resources_with_wildcard.insert(resource);
        }
        if resource == "*" {
            subresources_of_wildcard.insert(part);
        }
    }
    if list.len() > 1 && everything {
        causes.invalid(
            list,
            "if '*/*' is present, must not specify other resources",
        );
    }
    if all && bare {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.invalid(list, detail);
    }
}
