//! The field selector in reviews of access. Pure.

use longshore_model::{CauseList, FieldSelector, StatusCause};
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

/// Reads a selector, and returns a message if a part of it is ignored.
pub(super) fn read(selector: &Value) -> (FieldSelector, Option<&'static str>) {
    const ALL: &str = "spec.resourceAttributes.fieldSelector ignored due to parse error";
    const SOME: &str = "spec.resourceAttributes.fieldSelector partially ignored due to parse error";
    let everything = FieldSelector::everything();
    let requirements = requirements(selector);
    if requirements.is_empty() {
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        return match raw.parse() {
            Ok(fields) => (fields, None),
            Err(_) => (everything, Some(ALL)),
        };
    }
    let (mut fields, mut known, mut ignored) = (everything, 0, false);
    for requirement in requirements {
        let key = requirement["key"].as_str().unwrap_or_default();
        match (requirement["operator"].as_str(), values(requirement)) {
            (Some("In"), [Value::String(value)]) => {
                known += 1;
                fields = fields.with(key, value);
            }
            // Decisions do not depend on excluded values.
            (Some("NotIn"), [Value::String(_)]) => known += 1,
            _ => ignored = true,
        }
    }
    let problem = if known > 0 { SOME } else { ALL };
    (fields, ignored.then_some(problem))
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

    #[test]
    fn selectors_are_read_as_far_as_possible() {
        let one = json!({"key": "a", "operator": "In", "values": ["b"]});
        let two = json!({"key": "a", "operator": "In", "values": ["b", "c"]});
        let not = json!({"key": "d", "operator": "NotIn", "values": ["e"]});
        for (selector, requires, problem) in [
            (Value::Null, false, ""),
            (json!({"rawSelector": "a=b,c!=d"}), true, ""),
            (json!({"rawSelector": "a"}), false, " ignored"),
            (json!({"requirements": [one, not]}), true, ""),
            (
                json!({"requirements": [one, two]}),
                true,
                " partially ignored",
            ),
            (json!({"requirements": [two]}), false, " ignored"),
        ] {
            let (fields, found) = read(&selector);
            assert_eq!(fields.requires("a", "b"), requires, "{selector}");
            let expected =
                (!problem.is_empty()).then(|| format!("{PATH}{problem} due to parse error"));
            assert_eq!(found.map(str::to_owned), expected, "{selector}");
        }
    }
}
