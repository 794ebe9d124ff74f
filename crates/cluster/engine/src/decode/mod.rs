//! Decodes the object of a request. A single walk along the types of its kind rejects wrong types,
//! finds and drops unknown fields, drops nulls, and normalizes times and quantities.

mod problem;
mod walk;

use std::collections::HashSet;

use longshore_model::KindInfo;
use longshore_schema::{Structural, registry};
use serde_json::{Map, Value, map::Entry};

use crate::{
    FieldValidation,
    nesting::{NESTING, is_deeper, too_deep},
};
pub(crate) use problem::Problem;
use walk::Walk;
pub(crate) use walk::{drop_invalid, illegal_base64};

/// Adds the fields that every object of the kind has.
pub(crate) fn complete(kind: &KindInfo, object: &mut Map<String, Value>) {
    if let Some(root) = registry().root(&kind.gvk) {
        longshore_schema::complete(root, object);
    }
}

/// A decoded object and its warnings.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) object: Map<String, Value>,
    /// `metadata.managedFields`, if the request contains it.
    pub(crate) managed: Option<Value>,
    pub(crate) warnings: Vec<String>,
}

/// Decodes an object of a kind; `schema` is the schema of a custom kind.
pub(crate) fn decode(
    kind: &KindInfo,
    schema: Option<&Structural>,
    object: Value,
    validation: FieldValidation,
) -> Result<Decoded, Problem> {
    let (api_version, name) = (kind.api_version(), &kind.gvk.kind);
    let cannot = |problem: String| {
        format!(
            "{name} in version {:?} cannot be handled as a {name}: {problem}",
            kind.gvk.version
        )
    };
    let Value::Object(mut object) = object else {
        return Err(Problem::Unreadable(cannot(format!(
            "json: cannot unmarshal {} into Go value of type {name}",
            json_type_name(&object)
        ))));
    };
    for (field, expected) in [("apiVersion", api_version.as_str()), ("kind", name)] {
        match object.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(given)) if given.is_empty() || given == expected => {}
            Some(given) => {
                let given = given
                    .as_str()
                    .map_or_else(|| given.to_string(), str::to_owned);
                let (what, expected) = if field == "kind" {
                    ("kind", expected)
                } else {
                    ("API version", expected)
                };
                return Err(Problem::Unreadable(format!(
                    "the {what} in the data ({given}) does not match the expected {what} ({expected})"
                )));
            }
        }
    }
    let reset = take_managed(&mut object, |list| match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    });
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), name.as_ref().into());
    if is_too_deep(&object) {
        return Err(Problem::Unreadable(cannot(too_deep())));
    }
    let mut walk = Walk::default();
    match schema {
        Some(schema) => walk.custom(schema, &mut object),
        None => {
            if let Some(root) = registry().root(&kind.gvk) {
                walk.object(root, &mut object);
            }
        }
    }
    if let Some(wrong) = walk.wrong {
        let restored = wrong.restored();
        let text = cannot(wrong.text());
        return Err(Problem::WrongType { text, restored });
    }
    let managed = reset.or_else(|| take_managed(&mut object, |_| true));
    normalize_metadata(&mut object);
    let owners = deduplicate_owners(&mut object);
    let mut warnings = match validation {
        FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => walk.unknown.into_vec(),
        FieldValidation::Strict if walk.unknown.is_empty() => Vec::new(),
        FieldValidation::Strict => {
            return Err(Problem::Strict(cannot(format!(
                "strict decoding error: {}",
                walk.unknown.into_vec().join(", ")
            ))));
        }
    };
    warnings.extend(owners);
    Ok(Decoded {
        object,
        managed,
        warnings,
    })
}

/// Returns true if an object exceeds the depth limit. Managed fields are exempt because they are
/// nested deeper than the object that they describe.
fn is_too_deep(object: &Map<String, Value>) -> bool {
    object.iter().any(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => metadata
            .iter()
            .any(|(name, value)| name != "managedFields" && is_deeper(value, NESTING - 2)),
        value => is_deeper(value, NESTING - 1),
    })
}

/// Removes and returns `metadata.managedFields` if it is a list of objects.
fn take_managed(
    object: &mut Map<String, Value>,
    is_such: impl Fn(&Vec<Value>) -> bool,
) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    match metadata.get("managedFields") {
        Some(Value::Array(list)) if is_such(list) => metadata.remove("managedFields"),
        _ => None,
    }
}

/// Ensures that metadata exists and drops server-managed and empty fields from
/// it.
fn normalize_metadata(object: &mut Map<String, Value>) {
    let metadata = match object.entry("metadata") {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Value::Object(Map::new())),
    };
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|name, value| {
            let empty = match value {
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::String(text) => text.is_empty(),
                _ => false,
            };
            !empty && !matches!(name.as_str(), "managedFields" | "selfLink")
        });
    }
}

/// Drops duplicate owner references; returns a warning if there were any.
fn deduplicate_owners(object: &mut Map<String, Value>) -> Option<String> {
    let owners = object
        .get_mut("metadata")?
        .get_mut("ownerReferences")?
        .as_array_mut()?;
    if owners.len() < 2 {
        return None;
    }
    let (mut seen, mut twice) = (HashSet::with_capacity(owners.len()), Vec::new());
    owners.retain(|owner| {
        let is_new = seen.insert(owner.clone());
        if !is_new {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_new
    });
    (!twice.is_empty()).then(|| {
        let uids = twice.join(", ");
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
        )
    })
}

/// The name of a JSON type in error messages.
pub(crate) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;
    use serde_json::json;

    use super::*;

    fn pod(value: Value, validation: FieldValidation) -> Result<Decoded, Problem> {
        decode(builtin("", "Pod").unwrap(), None, value, validation)
    }

    #[test]
    fn unknown_fields_are_dropped_reported_or_rejected() {
        let value = json!({"metadata": {"name": "a"}, "spec": {"foo": 1, "containers": []}});
        let decoded = pod(value.clone(), FieldValidation::Warn).unwrap();
        assert_eq!(decoded.warnings, [r#"unknown field "spec.foo""#]);
        assert_eq!(
            Value::from(decoded.object)["spec"],
            json!({"containers": []})
        );
        assert!(
            pod(value.clone(), FieldValidation::Ignore)
                .unwrap()
                .warnings
                .is_empty()
        );
        let problem = pod(value, FieldValidation::Strict).unwrap_err();
        assert_eq!(
            problem,
            Problem::Strict(
                r#"Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo""#
                    .into()
            )
        );
    }

    #[test]
    fn nulls_and_server_managed_fields_are_dropped() {
        let decoded = pod(
            json!({"metadata": {"name": "a", "creationTimestamp": null, "labels": {},
                "managedFields": [{"manager": "me"}], "selfLink": "x"}}),
            FieldValidation::Strict,
        )
        .unwrap();
        assert_eq!(
            Value::from(decoded.object),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
        );
    }

    #[test]
    fn wrong_types_are_rejected() {
        for value in [
            json!([]),
            json!({"kind": "Job"}),
            json!({"apiVersion": "v2"}),
            json!({"metadata": []}),
            json!({"metadata": {"labels": {"a": 1}}}),
            json!({"spec": {"containers": {}}}),
            json!({"spec": {"terminationGracePeriodSeconds": 1.5}}),
            json!({"metadata": {"creationTimestamp": "yesterday"}}),
        ] {
            assert!(
                matches!(
                    pod(value.clone(), FieldValidation::Warn),
                    Err(Problem::Unreadable(_) | Problem::WrongType { .. })
                ),
                "{value}"
            );
        }
    }

    #[test]
    fn times_and_quantities_are_normalized() {
        let decoded = pod(
            json!({"metadata": {"creationTimestamp": "2026-01-02T05:04:05.678+02:00"},
                "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}]}}),
            FieldValidation::Warn,
        )
        .unwrap();
        let value = Value::from(decoded.object);
        assert_eq!(
            value["metadata"]["creationTimestamp"],
            "2026-01-02T03:04:05Z"
        );
        assert_eq!(
            value["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "1"
        );
    }
}
