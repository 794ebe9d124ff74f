//! The form in which objects are written: which fields are left out when they
//! are zero, and which are always there. Kubernetes' types say it; the table
//! `facts/zeros.txt` holds it, which `facts/generate.py` takes from them.
//!
//! A line `@package` opens a package. A line `Type word…` tells about a type's
//! fields: `field?` is left out when it is zero (an empty text, list or map, 0
//! or false), `field=ZERO` is always there, as the JSON `ZERO` when nothing was
//! said. Fields that are not named are there when they were given.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::graph::{Shape, TypeRef};

static ZEROS: &str = include_str!("facts/zeros.txt");

/// What a type's fields are when nothing was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zeros {
    /// Fields left out when zero.
    pub(crate) omitted: Vec<&'static str>,
    /// Fields that are always there, and their zero values.
    pub(crate) always: Vec<(&'static str, Value)>,
}

/// Reads the table, by full name of type.
pub(crate) fn read() -> HashMap<String, Zeros> {
    let mut table = HashMap::new();
    let mut package = "";
    for line in ZEROS.lines() {
        if let Some(name) = line.strip_prefix('@') {
            package = name;
            continue;
        }
        let mut words = line.split(' ');
        let Some(name) = words.next() else { continue };
        let mut zeros = Zeros::default();
        for word in words {
            if let Some(field) = word.strip_suffix('?') {
                zeros.omitted.push(field);
            } else if let Some((field, zero)) = word.split_once('=') {
                let zero = serde_json::from_str(zero).unwrap_or_default();
                zeros.always.push((field, zero));
            }
        }
        table.insert(format!("{package}.{name}"), zeros);
    }
    table
}

/// Whether a value says no more than its absence would, where a type leaves
/// zero values out.
#[must_use]
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(word) => !word,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Puts in the fields that are always there, all the way down.
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
            // A struct that was given as null, and a null that stands for one.
            Some(Value::Null) if !zero.is_null() => {
                fields.insert((*name).to_owned(), zero.clone());
            }
            // Stored as protobuf, an empty list is none; definitions of custom
            // resources are stored as JSON.
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
    fn every_word_is_about_a_field_that_exists() {
        for (name, zeros) in read() {
            let Some(at) = registry().named(&name) else {
                continue;
            };
            if at.shape() != Shape::Object {
                continue;
            }
            let always = zeros.always.iter().map(|(field, _)| field);
            for field in zeros.omitted.iter().chain(always) {
                assert!(at.field(field).is_some(), "{name}.{field}");
            }
        }
    }

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
    fn fields_know_whether_they_leave_zero_out() {
        let pod = registry()
            .root(&Gvk::from_api_version("v1", "Pod"))
            .unwrap();
        let spec = pod.field("spec").unwrap();
        assert!(spec.field("hostNetwork").unwrap().omits_zero());
        assert!(!spec.field("activeDeadlineSeconds").unwrap().omits_zero());
        assert!(!spec.field("containers").unwrap().omits_zero());
    }
}
