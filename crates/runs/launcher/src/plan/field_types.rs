//! The types of the values in an object that a user wrote, by the schema of its kind.

use longshore_schema::{Shape, TypeRef};
use serde_json::Value;

use crate::config::fraction_rule;

/// Rejects values of the wrong type, with an error that contains the field. Quantities that are
/// numbers, as in `cpu: 2`, become strings, which the Rust types require. Unknown fields are
/// ignored.
pub(super) fn check(root: TypeRef, object: &mut Value) -> Result<(), String> {
    visit(root, object, &mut String::new())
}

fn visit(at: TypeRef, value: &mut Value, path: &mut String) -> Result<(), String> {
    let length = path.len();
    match (at.shape(), &mut *value) {
        (Shape::Any, _) => {}
        (shape @ (Shape::Object | Shape::Map), Value::Object(fields)) => {
            for (name, value) in fields {
                // A field that is null is absent.
                if shape == Shape::Object && value.is_null() {
                    continue;
                }
                let Some(inner) = at.field(name) else {
                    continue;
                };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                visit(inner, value, path)?;
                path.truncate(length);
            }
        }
        (Shape::List, Value::Array(items)) => {
            let Some(inner) = at.items() else {
                return Ok(());
            };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                visit(inner, item, path)?;
                path.truncate(length);
            }
        }
        (Shape::Quantity, Value::Number(number)) => *value = Value::String(number.to_string()),
        (Shape::Quantity, Value::String(text)) => check_bytes(path, text)?,
        (
            Shape::String | Shape::IntOrString | Shape::Time | Shape::MicroTime | Shape::Bytes,
            Value::String(_),
        )
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Number, Value::Number(_)) => {}
        (Shape::Integer, Value::Number(number)) if is_in_range(number, at.is_narrow()) => {}
        (Shape::IntOrString, Value::Number(number)) if is_in_range(number, true) => {}
        (shape, found) => {
            let (wanted, found) = (expected(shape), described(shape, found));
            return Err(format!("field \"{path}\" must be {wanted}, not {found}"));
        }
    }
    Ok(())
}

/// Rejects thousandths of a byte, such as `256m` of memory, which Kubernetes rounds up to a byte.
fn check_bytes(path: &str, text: &str) -> Result<(), String> {
    let field = path.rsplit('.').next().unwrap_or_default();
    let is_bytes = ["memory", "ephemeral-storage", "storage", "sizeLimit"].contains(&field);
    match fraction_rule(text).filter(|_| is_bytes) {
        Some(rule) => Err(format!("field \"{path}\" is {text:?}: {rule}")),
        None => Ok(()),
    }
}

fn is_in_range(number: &serde_json::Number, is_narrow: bool) -> bool {
    let number = number.as_i64();
    number.is_some_and(|number| !is_narrow || i32::try_from(number).is_ok())
}

fn expected(shape: Shape) -> &'static str {
    match shape {
        Shape::Object | Shape::Map => "a mapping",
        Shape::List => "a list",
        Shape::String => "a string",
        Shape::Integer => "an integer in the range of the field",
        Shape::Number => "a number",
        Shape::Boolean => "true or false",
        Shape::IntOrString => "an integer or a string",
        Shape::Quantity => "a quantity",
        Shape::Time | Shape::MicroTime => "a time in RFC 3339 format",
        Shape::Bytes => "a string in base64",
        Shape::Any => "any value",
    }
}

/// Describes the value. If the field can contain confidential text, the description contains only
/// its type.
fn described(wanted: Shape, value: &Value) -> String {
    let is_text = matches!(
        wanted,
        Shape::String | Shape::Bytes | Shape::List | Shape::Map | Shape::Object
    );
    let kind = match value {
        Value::Object(_) => "a mapping",
        Value::Array(_) => "a list",
        Value::String(_) if is_text => "a string",
        Value::Bool(_) if is_text => "a boolean",
        Value::Number(_) if is_text => "a number",
        leaf => return leaf.to_string(),
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_client::k8s_openapi::api::batch::v1::Job;
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::{Map, json};

    use super::*;

    fn jobs() -> TypeRef {
        let kind = Gvk::from_api_version("batch/v1", "Job");
        registry().root(&kind).unwrap()
    }

    /// A value with all fields of a type.
    fn full(at: TypeRef) -> Value {
        match at.shape() {
            Shape::Object => {
                let fields = at.fields().map(|(name, at)| (name.to_owned(), full(at)));
                Value::Object(fields.collect())
            }
            Shape::Map => {
                Value::Object(Map::from_iter([("key".into(), full(at.items().unwrap()))]))
            }
            Shape::List => json!([full(at.items().unwrap())]),
            Shape::String | Shape::Quantity => json!("1"),
            Shape::Integer | Shape::IntOrString => json!(1),
            Shape::Number => json!(1.5),
            Shape::Boolean => json!(true),
            Shape::Time => json!("2026-01-02T03:04:05Z"),
            Shape::MicroTime => json!("2026-01-02T03:04:05.000006Z"),
            Shape::Bytes => json!("YQ=="),
            Shape::Any => json!({"any": [1, null]}),
        }
    }

    #[test]
    fn the_type_has_every_field_of_the_schema() {
        let mut object = full(jobs());
        object["apiVersion"] = json!("batch/v1");
        object["kind"] = json!("Job");
        let mut checked = object.clone();
        check(jobs(), &mut checked).unwrap();
        assert_eq!(checked, object);
        let job: Job = serde_json::from_value(checked).unwrap();
        assert_eq!(serde_json::to_value(job).unwrap(), object);
    }

    #[test]
    fn values_of_the_wrong_type_are_named_by_field() {
        let problem = |spec: Value| {
            let mut object = json!({"spec": {"template": {"spec": spec}}});
            check(jobs(), &mut object).unwrap_err()
        };
        assert_eq!(
            problem(json!({"containers": [{"name": "main"}, {"image": 7}]})),
            "field \"spec.template.spec.containers[1].image\" must be a string, not a number"
        );
        assert_eq!(
            problem(json!({"priority": 3_000_000_000_u32})),
            "field \"spec.template.spec.priority\" must be an integer in the range of the field, \
             not 3000000000"
        );
        assert_eq!(
            problem(json!({"hostNetwork": "yes", "nodeSelector": {"a": "b"}})),
            "field \"spec.template.spec.hostNetwork\" must be true or false, not \"yes\""
        );
        assert_eq!(
            problem(json!({"nodeSelector": {"zone": null}})),
            "field \"spec.template.spec.nodeSelector.zone\" must be a string, not null"
        );
        assert_eq!(
            problem(json!({"volumes": {"name": "a"}})),
            "field \"spec.template.spec.volumes\" must be a list, not a mapping"
        );
    }

    #[test]
    fn quantities_may_be_numbers() {
        let pod = |cpu: Value| {
            let main = json!({"name": "main", "resources": {"limits": {"cpu": cpu}}});
            json!({"spec": {"template": {"spec": {"containers": [main], "nodeName": null}}}})
        };
        for (number, text) in [(json!(2), "2"), (json!(0.5), "0.5")] {
            let mut object = pod(number);
            check(jobs(), &mut object).unwrap();
            assert_eq!(object, pod(json!(text)));
        }
    }
}
