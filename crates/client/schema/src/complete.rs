//! Completes objects: adds the fields that Kubernetes always writes, with their
//! zero values.

use serde_json::{Map, Value};

use crate::graph::{Shape, TypeRef};

/// Adds the fields that are always present, at all levels.
///
/// ```
/// use longshore_model::Gvk;
/// let role = longshore_schema::registry().root(&Gvk::from_api_version("apps/v1", "ReplicaSet")).unwrap();
/// let mut object = serde_json::json!({"spec": {"replicas": 1}});
/// longshore_schema::complete(role, object.as_object_mut().unwrap());
/// assert_eq!(object["status"], serde_json::json!({"replicas": 0}));
/// assert_eq!(object["spec"]["selector"], serde_json::Value::Null);
/// ```
pub fn complete(at: TypeRef, fields: &mut Map<String, Value>) {
    for (name, zero) in at.always() {
        match fields.get_mut(*name) {
            // A null replaces a struct with its zero value.
            Some(Value::Null) if !zero.is_null() => {
                fields.insert((*name).to_owned(), zero.clone());
            }
            // Kubernetes stores built-in kinds as protobuf, which cannot
            // distinguish an empty list from a missing one. It stores
            // CustomResourceDefinitions as JSON.
            Some(Value::Array(items)) if items.is_empty() && !is_definition(at) => {
                fields.insert((*name).to_owned(), zero.clone());
            }
            Some(_) => {}
            None => {
                fields.insert((*name).to_owned(), zero.clone());
            }
        }
    }
    for (name, value) in fields {
        if (value.is_object() || value.is_array())
            && let Some(inner) = at.field(name)
        {
            complete_value(inner, value);
        }
    }
}

fn is_definition(at: TypeRef) -> bool {
    at.definition()
        .is_some_and(|name| name.contains(".apiextensions."))
}

fn complete_value(at: TypeRef, value: &mut Value) {
    match (at.shape(), value) {
        (Shape::Object | Shape::Map, Value::Object(fields)) => complete(at, fields),
        (Shape::List, Value::Array(items)) => {
            if let Some(inner) = at.items() {
                items
                    .iter_mut()
                    .for_each(|item| complete_value(inner, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::Gvk;
    use serde_json::json;

    use super::*;
    use crate::registry;

    #[test]
    fn rule_29_required_fields_are_never_missing() {
        let root = |version, kind| {
            registry()
                .root(&Gvk::from_api_version(version, kind))
                .unwrap()
        };
        let mut slice = json!({});
        complete(
            root("discovery.k8s.io/v1", "EndpointSlice"),
            slice.as_object_mut().unwrap(),
        );
        assert_eq!(
            slice,
            json!({"metadata": {}, "addressType": "", "endpoints": null, "ports": null})
        );
        let mut pod = json!({"spec": {"containers": [{"name": "a"}]}});
        complete(root("v1", "Pod"), pod.as_object_mut().unwrap());
        assert_eq!(
            pod,
            json!({"metadata": {}, "spec": {"containers": [{"name": "a", "resources": {}}]}, "status": {}})
        );
        let twice = {
            let mut again = pod.clone();
            complete(root("v1", "Pod"), again.as_object_mut().unwrap());
            again
        };
        assert_eq!(twice, pod);
    }

    #[test]
    fn fields_know_whether_they_omit_zero() {
        let pod = registry()
            .root(&Gvk::from_api_version("v1", "Pod"))
            .unwrap();
        let spec = pod.field("spec").unwrap();
        assert!(spec.field("hostNetwork").unwrap().omits_zero());
        assert!(!spec.field("activeDeadlineSeconds").unwrap().omits_zero());
        assert!(!spec.field("containers").unwrap().omits_zero());
    }
}
