//! Adapts field sets to changes of the schema. If a field has become atomic, the set keeps only the
//! field itself. The opposite change has no effect, as in Kubernetes since 1.22: the owner of a
//! field that is no longer atomic does not own the fields inside it.

use std::collections::HashMap;

use longshore_schema::{OwnedType, Ownership, Shape};
use serde_json::{Map, Value};

use super::{
    collect,
    element::{self, Element},
    entry::Entry,
    scope::Scope,
    set::FieldSet,
};

/// Adapts entries to the current schema and object.
pub(crate) fn reconcile_entries(
    scope: &Scope<'_>,
    entries: &mut [Entry],
    object: &Map<String, Value>,
) {
    for entry in entries {
        if let Some(version) = scope.version(&entry.manager.api_version) {
            let object = version.converted(object);
            entry.fields = reconcile(version.root, entry.set(), &object).to_text();
        }
    }
}

/// Adapts a field set to the current schema and object.
pub(super) fn reconcile(at: OwnedType<'_>, set: FieldSet, object: &Map<String, Value>) -> FieldSet {
    let mut aligned = FieldSet {
        owned: set.owned,
        inside: Vec::with_capacity(set.inside.len()),
    };
    for (element, inner) in set.inside {
        let found = element::field_name(&element)
            .and_then(|name| Some((at.field(name)?, object.get(name)?)));
        let inner = match found {
            Some((at, value)) => value_at(at, inner, value),
            None => inner,
        };
        aligned.push(element, inner);
    }
    aligned
}

fn value_at(at: OwnedType<'_>, set: FieldSet, value: &Value) -> FieldSet {
    // Without a declared type, earlier ownership cannot be determined.
    if at.shape() == Shape::Any {
        return set;
    }
    match (at.ownership(value), value) {
        (Ownership::Whole, Value::Object(_) | Value::Array(_)) if !set.is_empty() => {
            FieldSet::leaf()
        }
        (Ownership::Fields, Value::Object(fields)) => reconcile(at, set, fields),
        (ownership @ (Ownership::Values | Ownership::Items), Value::Array(list)) => {
            let Ok(items) = collect::elements(at, ownership, list) else {
                return set;
            };
            items_at(at.items(), set, &items)
        }
        _ => set,
    }
}

fn items_at(at: OwnedType<'_>, set: FieldSet, items: &[(Element, &Value)]) -> FieldSet {
    let mut aligned = FieldSet {
        owned: set.owned,
        inside: Vec::with_capacity(set.inside.len()),
    };
    let mut values = HashMap::with_capacity(items.len());
    for (element, value) in items {
        values.entry(element).or_insert(*value);
    }
    for (element, inner) in set.inside {
        let inner = match values.get(&element) {
            Some(value) => value_at(at, inner, value),
            None => inner,
        };
        aligned.push(element, inner);
    }
    aligned
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::Gvk;
    use longshore_schema::registry;
    use serde_json::json;

    use super::*;

    fn realigned(set: &str, object: Value) -> String {
        let root = registry().root(&Gvk::from_api_version("v1", "Pod"));
        let root = OwnedType::Builtin(root.unwrap());
        let set = FieldSet::from_text(set).unwrap();
        reconcile(root, set, object.as_object().unwrap()).to_text()
    }

    #[test]
    fn rule_18_owners_of_a_bare_map_or_list_own_nothing_inside() {
        let object = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}});
        let set = r#"{"f:metadata":{"f:finalizers":{},"f:labels":{}}}"#;
        assert_eq!(realigned(set, object), set);
    }

    #[test]
    fn rule_18_fields_that_became_atomic_have_one_owner() {
        let object = json!({"spec": {"nodeSelector": {"a": "1"}, "tolerations": [{"key": "a"}]}});
        assert_eq!(
            realigned(
                r#"{"f:spec":{"f:nodeSelector":{".":{},"f:a":{}},"f:tolerations":{"i:0":{}}}}"#,
                object
            ),
            r#"{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}}}"#
        );
    }

    #[test]
    fn items_are_matched_by_their_keys() {
        let object = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "E"}]}]}});
        let set = r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:env":{}},"k:{\"name\":\"b\"}":{}}}}"#;
        assert_eq!(realigned(set, object), set);
    }
}
