//! Validation of label selectors.

use longshore_model::CauseList;
use serde_json::Value;

use super::field_value::{Causes, FieldValue};
use crate::json::Object;

/// Validates a label selector.
pub(super) fn check(selector: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.labels(&selector.get("matchLabels"));
    for requirement in selector.get("matchExpressions").items() {
        let values = requirement.get("values");
        match requirement.get("operator").text() {
            "In" | "NotIn" => {
                if values.len() == 0 {
                    let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                    causes.required(&values, detail);
                }
            }
            "Exists" | "DoesNotExist" => {
                if values.len() > 0 {
                    let detail =
                        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    causes.forbidden(&values, detail);
                }
            }
            _ => causes.invalid(
                &requirement.get("operator"),
                "not a valid selector operator",
            ),
        }
        causes.qualified(&requirement.get("key"));
    }
}

/// Returns true if a selector is valid.
pub(super) fn is_usable(selector: &FieldValue<'_>) -> bool {
    let mut problems = CauseList::new();
    check(selector, &mut Causes(&mut problems));
    problems.is_empty()
}

/// Returns true if a selector is empty and therefore matches everything.
pub(super) fn is_empty(selector: &FieldValue<'_>) -> bool {
    selector.get("matchLabels").len() == 0 && selector.get("matchExpressions").len() == 0
}

/// Returns true if a selector matches labels.
pub(super) fn selects(selector: &FieldValue<'_>, labels: Option<&Object>) -> bool {
    let label = |key: &str| {
        labels
            .and_then(|labels| labels.get(key))
            .and_then(Value::as_str)
    };
    let all = selector.get("matchLabels");
    all.entries()
        .all(|(key, value)| label(key) == Some(value.text()))
        && selector.get("matchExpressions").items().all(|requirement| {
            let value = label(requirement.get("key").text());
            let named = requirement
                .get("values")
                .items()
                .any(|one| Some(one.text()) == value);
            match requirement.get("operator").text() {
                "In" => named,
                "NotIn" => !named,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
