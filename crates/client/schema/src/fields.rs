//! Finds and drops fields that a kind does not have.

use longshore_model::{Gvk, MessageList};
use serde_json::Value;

use crate::{
    graph::{Shape, TypeRef},
    registry,
};

/// The unknown fields of `object`, with the messages of API servers: `unknown
/// field "spec.foo"`. Empty for kinds that are not built in.
///
/// ```
/// use longshore_model::Gvk;
/// let pod = serde_json::json!({"spec": {"containers": [{"name": "a", "colour": "red"}]}});
/// assert_eq!(
///     longshore_schema::unknown_fields(&Gvk::from_api_version("v1", "Pod"), &pod),
///     [r#"unknown field "spec.containers[0].colour""#],
/// );
/// ```
#[must_use]
pub fn unknown_fields(gvk: &Gvk, object: &Value) -> Vec<String> {
    let mut unknown = MessageList::new();
    if let Some(root) = registry().root(gvk) {
        find(root, object, &mut String::new(), &mut unknown);
    }
    unknown.into_vec()
}

/// Drops the unknown fields of `object`. Objects of kinds that are not built in
/// are left unchanged.
pub fn prune(gvk: &Gvk, object: &mut Value) {
    if let Some(root) = registry().root(gvk) {
        drop_unknown(root, object);
    }
}

fn find(at: TypeRef, value: &Value, path: &mut String, unknown: &mut MessageList) {
    let length = path.len();
    match (at.shape(), value) {
        (Shape::Object | Shape::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                match at.field(name) {
                    Some(inner) => find(inner, value, path, unknown),
                    None => unknown.push(format!("unknown field \"{path}\"")),
                }
                path.truncate(length);
            }
        }
        (Shape::List, Value::Array(items)) => {
            let Some(inner) = at.items() else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find(inner, item, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn drop_unknown(at: TypeRef, value: &mut Value) {
    match (at.shape(), value) {
        (Shape::Object | Shape::Map, Value::Object(fields)) => {
            fields.retain(|name, value| match at.field(name) {
                Some(inner) => {
                    drop_unknown(inner, value);
                    true
                }
                None => false,
            });
        }
        (Shape::List, Value::Array(items)) => {
            let Some(inner) = at.items() else { return };
            items.iter_mut().for_each(|item| drop_unknown(inner, item));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job() -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "colour": "red",
            "metadata": {"labels": {"any": "thing"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]},
            "spec": {"template": {"spec": {"containers": [
                {"name": "a"}, {"name": "b", "shoe": 1, "resources": {"limits": {"gpu": 1}}},
            ]}}},
        })
    }

    #[test]
    fn unknown_fields_are_reported_by_path() {
        assert_eq!(
            unknown_fields(&Gvk::from_api_version("batch/v1", "Job"), &job()),
            [
                r#"unknown field "colour""#,
                r#"unknown field "spec.template.spec.containers[1].shoe""#,
            ]
        );
        assert!(unknown_fields(&Gvk::from_api_version("a.com/v1", "Job"), &job()).is_empty());
    }

    #[test]
    fn unknown_fields_are_pruned() {
        let mut object = job();
        let gvk = Gvk::from_api_version("batch/v1", "Job");
        prune(&gvk, &mut object);
        assert!(unknown_fields(&gvk, &object).is_empty());
        assert_eq!(
            object["spec"]["template"]["spec"]["containers"][1],
            json!({"name": "b", "resources": {"limits": {"gpu": 1}}})
        );
        assert_eq!(object["metadata"], job()["metadata"]);
    }

    #[test]
    fn values_of_the_wrong_type_are_unchanged() {
        let gvk = Gvk::from_api_version("v1", "Pod");
        let mut object = json!({"metadata": 7, "spec": [{"x": 1}]});
        assert!(unknown_fields(&gvk, &object).is_empty());
        prune(&gvk, &mut object);
        assert_eq!(object, json!({"metadata": 7, "spec": [{"x": 1}]}));
    }
}
