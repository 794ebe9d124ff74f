//! Collects the fields of a value: the set that a manager owns after applying
//! it.

use longshore_schema::{OwnedType, Ownership};
use serde_json::{Map, Value};

use super::{
    element::{self, Element},
    set::FieldSet,
};

/// The fields of an object.
pub(super) fn of_object(at: OwnedType<'_>, fields: &Map<String, Value>) -> FieldSet {
    let mut set = FieldSet::default();
    for (name, value) in fields {
        let below = at.field(name).unwrap_or(OwnedType::Any);
        let mut inner = of_value(below, value);
        // The field is a leaf, or it is a map key that the user chose.
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        inner.owned |= is_empty || !at.names_field(name);
        set.push(element::field(name), inner);
    }
    set.sort();
    set
}

pub(super) fn of_value(at: OwnedType<'_>, value: &Value) -> FieldSet {
    match (at.ownership(value), value) {
        (Ownership::Fields, Value::Object(fields)) => of_object(at, fields),
        (ownership @ (Ownership::Values | Ownership::Items), Value::Array(list)) => {
            let Ok(mut items) = elements(at, ownership, list) else {
                return FieldSet::leaf();
            };
            items.sort_by(|(a, _), (b, _)| a.cmp(b));
            let mut set = FieldSet::default();
            for duplicates in items.chunk_by(|(a, _), (b, _)| a == b) {
                let Some((element, value)) = duplicates.first() else {
                    continue;
                };
                let mut inner = match duplicates {
                    [_] => of_value(at.items(), value),
                    // Items with the same keys cannot be distinguished.
                    _ => FieldSet::default(),
                };
                inner.owned = true;
                set.push(element.clone(), inner);
            }
            set
        }
        _ => FieldSet::leaf(),
    }
}

/// The path elements of a list's items.
pub(super) fn elements<'a>(
    at: OwnedType<'_>,
    ownership: Ownership,
    list: &'a [Value],
) -> Result<Vec<(Element, &'a Value)>, String> {
    let element = |item: &'a Value| {
        let element = match ownership {
            Ownership::Items => element::item(at, item),
            _ => element::member(item),
        };
        Ok((element?, item))
    };
    list.iter().map(element).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::json;

    use super::*;

    fn set(api_version: &str, kind: &str, value: Value) -> String {
        let root = registry().root(&Gvk::from_api_version(api_version, kind));
        let root = root.map_or(OwnedType::Any, OwnedType::Builtin);
        of_object(root, value.as_object().unwrap()).to_text()
    }

    /// The expected sets were recorded by a Kubernetes API server.
    #[test]
    fn rule_18_an_applied_deployment_is_owned_by_field() {
        let value = json!({
            "metadata": {"labels": {"app": "x"}, "finalizers": ["a/b"]},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": {
                "spec": {"containers": [{"name": "c", "command": ["a", "b"],
                    "ports": [{"containerPort": 80}], "env": []}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "topologySpreadConstraints": [
                        {"topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]}}},
        });
        let expected = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"a/b\"": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:command": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":
                        {".": {}, "f:containerPort": {}}}}},
                "f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
                "f:topologySpreadConstraints": {
                    "k:{\"topologyKey\":\"t\",\"whenUnsatisfiable\":\"DoNotSchedule\"}":
                        {".": {}, "f:topologyKey": {}, "f:whenUnsatisfiable": {}, "f:maxSkew": {}}}}}},
        });
        let given: Value = serde_json::from_str(&set("apps/v1", "Deployment", value)).unwrap();
        assert_eq!(given, expected);
    }

    #[test]
    fn rule_18_without_a_schema_lists_are_atomic_and_objects_are_owned() {
        let value = json!({"spec": {"a": {"b": [1]}, "e": {}, "n": null}});
        assert_eq!(
            set("example.com/v1", "Thing", value),
            r#"{"f:spec":{".":{},"f:a":{".":{},"f:b":{}},"f:e":{},"f:n":{}}}"#
        );
    }

    #[test]
    fn items_with_equal_keys_are_merged() {
        let value = json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a"}]}});
        assert_eq!(
            set("v1", "Pod", value),
            r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{}}}}"#
        );
    }
}
