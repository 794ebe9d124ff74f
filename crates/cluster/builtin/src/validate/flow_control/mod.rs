//! Validation of FlowSchemas and PriorityLevelConfigurations.

mod levels;
mod rules;
#[cfg(test)]
mod tests;

use longshore_model::CauseList;

pub(crate) use levels::level;

use super::field_value::{Causes, FieldValue};
use crate::json::{self, Object};

/// The name of the FlowSchema and of the level of requests that are never limited.
const EXEMPT: &str = "exempt";
/// The highest `matchingPrecedence`, by which the FlowSchema of a request is selected.
const MAX_PRECEDENCE: i64 = 10_000;

pub(crate) fn schema(object: &Object, causes: &mut CauseList) {
    let (spec, found) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let name = json::text(object, "metadata.name");
    let precedence = spec.get("matchingPrecedence");
    match precedence.number().unwrap_or_default() {
        number if number <= 0 => found.invalid(&precedence, "must be a positive value"),
        1 if name != EXEMPT => found.invalid(
            &precedence,
            "only the schema named 'exempt' may have matchingPrecedence 1",
        ),
        number if number > MAX_PRECEDENCE => {
            found.invalid(&precedence, "must not be greater than 10000");
        }
        _ => {}
    }
    let method = spec.get("distinguisherMethod");
    let methods = ["ByNamespace", "ByUser"];
    if method.is_set() && !methods.contains(&method.get("type").text()) {
        // Kubernetes reports the whole method as the value of its type.
        let path = method.get("type").path;
        found.not_supported(&method.with_path(path), &methods);
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    match level.text() {
        "" => found.required(&level, "must reference a priority level"),
        _ => found.subdomain(&level),
    }
    for rule in spec.get("rules").items() {
        rules::check(&rule, found);
    }
    status(object, causes);
}

/// Requires that each condition has a type, and no type occurs twice.
pub(crate) fn status(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let conditions = FieldValue::field(object, "status").get("conditions");
    let types = || conditions.items().map(|condition| condition.get("type"));
    causes.unique(types());
    for kind in types().filter(|kind| kind.text().is_empty()) {
        causes.required(&kind, "");
    }
}
