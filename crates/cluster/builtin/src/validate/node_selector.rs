//! Validation of node selector terms, shared by pods and PersistentVolumes.

use super::field_value::{Causes, FieldValue};
use crate::cause::Cause;

/// Validates a term: requirements for labels and fields of a node.
pub(super) fn term(term: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for requirement in term.get("matchExpressions").items() {
        let (operator, values) = (requirement.get("operator"), requirement.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.len() == 0 => {
                causes.required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.forbidden(&values, detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.required(&values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => causes.0.push(Cause::invalid(
                &operator.path,
                operator.text(),
                "not a valid selector operator",
            )),
        }
        let key = requirement.get("key");
        super::meta::qualified(&key.path, key.text(), causes.0);
    }
    for requirement in term.get("matchFields").items() {
        let (operator, values) = (requirement.get("operator"), requirement.get("values"));
        if !matches!(operator.text(), "In" | "NotIn") {
            causes.invalid(&operator, "not a valid selector operator");
        } else if values.len() != 1 {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.required(&values, detail);
        }
        for name in values.items() {
            causes.subdomain(&name);
        }
        if requirement.get("key").text() != "metadata.name" {
            causes.invalid(&requirement.get("key"), "not a valid field selector key");
        }
    }
}
