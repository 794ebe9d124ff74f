//! The field selector in reviews of access. Pure.

use longshore_model::{CauseList, StatusCause};
use serde_json::Value;

use crate::status_error::{forbidden, invalid, required};

/// The path of the selector.
const PATH: &str = "spec.resourceAttributes.fieldSelector";

/// Lists the errors of a selector. Unknown operators are ignored, because newer clients may use
/// them.
pub(super) fn check(selector: &Value) -> Vec<StatusCause> {
    let mut causes = CauseList::new();
    if selector.is_null() {
        return causes.into_vec();
    }
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = requirements(selector);
    if !raw.is_empty() && !requirements.is_empty() {
        let why = "may not specified at the same time as requirements";
        causes.push(invalid(&format!("{PATH}.rawSelector"), raw, why));
    }
    let field = format!("{PATH}.requirements");
    if raw.is_empty() && requirements.is_empty() {
        let why = format!("when {PATH} is specified, requirements or rawSelector is required");
        causes.push(required(&field, &why));
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let field = |name: &str| format!("{field}[{index}].{name}");
        if requirement["key"].as_str().unwrap_or_default().is_empty() {
            causes.push(required(&field("key"), "must be specified"));
        }
        let has_values = !values(requirement).is_empty();
        match requirement["operator"].as_str() {
            Some("In" | "NotIn") if !has_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(required(&field("values"), why));
            }
            Some("Exists" | "DoesNotExist") if has_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(forbidden(&field("values"), why));
            }
            _ => {}
        }
        if causes.is_full() {
            break;
        }
    }
    causes.into_vec()
}

fn requirements(selector: &Value) -> &[Value] {
    let list = selector["requirements"].as_array();
    list.map(Vec::as_slice).unwrap_or_default()
}

fn values(requirement: &Value) -> &[Value] {
    let list = requirement["values"].as_array();
    list.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_checked() {
        let requirement = |operator: &str, values: Value| json!({"requirements": [{"key": "a", "operator": operator, "values": values}]});
        for (selector, expected) in [
            (Value::Null, ""),
            (json!({"rawSelector": "a=b"}), ""),
            (requirement("In", json!(["b"])), ""),
            (requirement("Exists", json!([])), ""),
            (requirement("Later", json!(["b", "c"])), ""),
            (json!({}), "requirements"),
            (requirement("In", json!([])), "requirements[0].values"),
            (
                requirement("Exists", json!(["b"])),
                "requirements[0].values",
            ),
            (
                json!({"requirements": [{"operator": "Exists"}]}),
                "requirements[0].key",
            ),
            (
                json!({"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}),
                "rawSelector",
            ),
        ] {
            let causes = check(&selector);
            let fields: Vec<&str> = causes
                .iter()
                .filter_map(|cause| cause.field.strip_prefix(PATH)?.strip_prefix('.'))
                .collect();
            assert_eq!(fields.join(","), expected, "{selector}");
            assert_eq!(causes.is_empty(), expected.is_empty(), "{selector}");
        }
    }
}
