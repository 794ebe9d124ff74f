//! Validation of the rules of a FlowSchema.

use longshore_model::CauseList;

use super::super::field_value::{Causes, FieldValue};

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// The kinds of subjects, each with its field and the message if the field is absent.
const SUBJECTS: [(&str, &str, &str); 3] = [
    (
        "Group",
        "group",
        "group is required when subject kind is 'Group'",
    ),
    (
        "ServiceAccount",
        "serviceAccount",
        "serviceAccount is required when subject kind is 'ServiceAccount'",
    ),
    (
        "User",
        "user",
        "user is required when subject kind is 'User'",
    ),
];

pub(super) fn check(rule: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let subjects = rule.get("subjects");
    if subjects.len() == 0 {
        causes.required(&subjects, "subjects must contain at least one value");
    }
    for at in subjects.items() {
        subject(&at, causes);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.len() == 0 && others.len() == 0 {
        causes.required(
            rule,
            "at least one of resourceRules and nonResourceRules has to be non-empty",
        );
    }
    for at in resources.items() {
        resource_rule(&at, causes);
    }
    for at in others.items() {
        non_resource_rule(&at, causes);
    }
}

fn subject(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let kind = at.get("kind");
    let words = SUBJECTS.map(|(word, ..)| word);
    if !words.contains(&kind.text()) {
        causes.not_supported(&kind, &words);
        return;
    }
    for (word, field, missing) in SUBJECTS {
        let value = at.get(field);
        if word != kind.text() {
            if value.is_set() {
                let detail = format!("{field} is forbidden when subject kind is not '{word}'");
                causes.forbidden(&value, &detail);
            }
        } else if !value.is_set() {
            causes.required(&value, missing);
        } else {
            named_subject(word, &value, causes);
        }
    }
}

fn named_subject(kind: &str, value: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let name = value.get("name");
    match name.text() {
        "" => causes.required(&name, ""),
        "*" => {}
        _ if kind == "ServiceAccount" => causes.subdomain(&name),
        _ => {}
    }
    if kind == "ServiceAccount" {
        let namespace = value.get("namespace");
        match namespace.text() {
            "" => causes.required(&namespace, "must specify namespace for service account"),
            _ => causes.label(&namespace),
        }
    }
}

fn resource_rule(rule: &FieldValue<'_>, causes: &mut Causes<'_>) {
    verbs(rule, causes);
    let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
    match groups.len() {
        0 => causes.required(&groups, "resource rules must supply at least one api group"),
        _ => _ = all_or_some(&groups, "api groups", causes),
    }
    match resources.len() {
        0 => causes.required(
            &resources,
            "resource rules must supply at least one resource",
        ),
        _ => _ = all_or_some(&resources, "resources", causes),
    }
    let namespaces = rule.get("namespaces");
    if namespaces.len() == 0 {
        if !rule.get("clusterScope").is_true() {
            causes.required(
                &namespaces,
                "resource rules that are not cluster scoped must supply at least one namespace",
            );
        }
    } else if !all_or_some(&namespaces, "namespaces", causes) {
        for at in namespaces.items() {
            let mut problems = CauseList::new();
            Causes(&mut problems).label(&at);
            for problem in problems {
                let (_, reason) = problem.message.rsplit_once(": ").unwrap_or_default();
                causes.invalid(
                    &at,
                    &format!("each member of this list must be '*' or a DNS-1123 label; {reason}"),
                );
            }
        }
    }
}

fn non_resource_rule(rule: &FieldValue<'_>, causes: &mut Causes<'_>) {
    verbs(rule, causes);
    let urls = rule.get("nonResourceURLs");
    if urls.len() == 0 {
        causes.required(&urls, "nonResourceURLs must contain at least one value");
    } else if !all_or_some(&urls, "non-resource URLs", causes) {
        for at in urls.items() {
            if let Some(problem) = path_problem(at.text()) {
                causes.invalid(&at, problem);
            }
        }
    }
}

/// Returns the reason why a path of a non-resource request is invalid.
fn path_problem(path: &str) -> Option<&'static str> {
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ => match path.find('*') {
            Some(star) if star.saturating_add(1) != path.len() || !path.ends_with("/*") => {
                Some("wildcard can only do suffix matching")
            }
            _ => None,
        },
    }
}

fn verbs(rule: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let verbs = rule.get("verbs");
    if verbs.len() == 0 {
        causes.required(&verbs, "verbs must contain at least one value");
    } else if !all_or_some(&verbs, "verbs", causes)
        && verbs.items().any(|verb| !VERBS.contains(&verb.text()))
    {
        causes.not_supported(&verbs, VERBS);
    }
}

/// Returns true if a list contains `*`, which must then be its only item.
fn all_or_some(list: &FieldValue<'_>, others: &str, causes: &mut Causes<'_>) -> bool {
    let has_all = list.items().any(|item| item.text() == "*");
    if has_all && list.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        causes.invalid(list, &detail);
    }
    has_all
}
