//! Validation of the rules that select requests for a policy.

use crate::validate::{
    field_value::{Causes, FieldValue},
    meta, selector, webhook,
};

/// Validates which requests a policy or binding matches.
pub(super) fn match_resources(matched: &FieldValue<'_>, causes: &mut Causes<'_>) {
    super::required_word(
        &matched.get("matchPolicy"),
        &["Equivalent", "Exact"],
        causes,
    );
    for name in ["namespaceSelector", "objectSelector"] {
        let labels = matched.get(name);
        if labels.is_set() {
            selector::check(&labels, causes);
        } else {
            causes.required(&labels, "");
        }
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for rule in matched.get(rules).items() {
            let names = rule.get("resourceNames");
            for name in names.items() {
                meta::path_segment(&name.path, name.text(), causes.0);
            }
            causes.unique(names.items());
            webhook::rule(&rule, causes);
        }
    }
}

/// Rejects rules for deletes, which cannot be changed.
pub(super) fn mutable_operations(matched: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for rule in matched.get("resourceRules").items() {
        for operation in rule.get("operations").items() {
            let path = format!("{}.resourceRules.operations", matched.path);
            let operation = operation.with_path(path);
            causes.one_of(&operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
        }
    }
}
