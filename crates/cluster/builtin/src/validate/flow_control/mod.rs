//! Validation of FlowSchemas and PriorityLevelConfigurations.

mod levels;
mod rules;
#[cfg(test)]
mod tests;

use longshore_model::{
    CauseList,
    flow_control::{DefaultObject, EXEMPT, SCHEMAS},
};

pub(crate) use levels::level;

use super::field_value::{Causes, FieldValue};
use crate::json::{self, Object};

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
    fixed_spec(name, &spec, SCHEMAS, found);
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

/// Objects that every API server has can be created only with their fixed spec. In the level
/// `exempt`, the field `exempt` may differ.
fn fixed_spec(
    name: &str,
    spec: &FieldValue<'_>,
    defaults: &[DefaultObject],
    causes: &mut Causes<'_>,
) {
    let mut mandatory = defaults.iter().filter(|default| default.is_mandatory);
    let Some(default) = mandatory.find(|default| default.name == name) else {
        return;
    };
    let expected = default.spec();
    let mut actual = spec.value();
    if expected["type"] == "Exempt" {
        actual["exempt"] = expected["exempt"].clone();
        if actual != expected {
            causes.invalid(
                spec,
                "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
            );
        }
    } else if actual != expected {
        causes.invalid(
            spec,
            &format!("spec of '{name}' must equal the fixed value"),
        );
    }
}
