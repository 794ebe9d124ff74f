//! Patch types as functions from a document and a patch to a document.

mod merge;
mod operations;

use longshore_model::{KindInfo, PatchKind};
use longshore_schema::{
    registry,
    strategic::{self, StrategicError},
};
use serde_json::{Map, Value};

use crate::Error;

/// Returns true if a patch reads or writes `metadata.managedFields`. They are expensive to decode,
/// so other patches are applied to a document without them.
pub(crate) fn sees_managed_fields(kind: PatchKind, patch: &Value) -> bool {
    const MANAGED: &str = "/metadata/managedFields";
    match patch {
        Value::Array(operations) if kind == PatchKind::Json => operations.iter().any(|operation| {
            let sees = |path: &Value| {
                path.as_str().is_some_and(|path| {
                    matches!(path, "" | "/metadata") || path.starts_with(MANAGED)
                })
            };
            sees(&operation["path"]) || sees(&operation["from"])
        }),
        patch => patch["metadata"].get("managedFields").is_some(),
    }
}

/// Applies a patch to an object of a kind. `text` is the text of a JSON patch, if available.
pub(crate) fn apply(
    kind: &KindInfo,
    patch_kind: PatchKind,
    object: Map<String, Value>,
    patch: &Value,
    text: Option<&str>,
) -> Result<Value, Error> {
    let mut document = Value::Object(object);
    match patch_kind {
        // Equivalent to an empty patch.
        PatchKind::Json | PatchKind::Strategic if patch.is_null() => Ok(document),
        PatchKind::Json => apply_json(document, patch, text),
        PatchKind::Merge if patch.is_object() => {
            merge::merge(&mut document, patch);
            Ok(document)
        }
        PatchKind::Strategic => match (patch, registry().root(&kind.gvk)) {
            (Value::Object(patch), Some(root)) => {
                let type_fields = [document["apiVersion"].clone(), document["kind"].clone()];
                let mut merged = strategic::merge(root, document, patch)
                    .map_err(|error| match error {
                        StrategicError::Format(problem) => Error::BadRequest(problem),
                        StrategicError::Content(problem) => Error::Untyped(problem),
                        other => Error::BadRequest(other.to_string()),
                    })?;
                // A patch cannot change the type of the object.
                if let Value::Object(merged) = &mut merged {
                    for (field, value) in ["apiVersion", "kind"].into_iter().zip(type_fields) {
                        if !value.is_null() {
                            merged.insert(field.to_owned(), value);
                        }
                    }
                }
                Ok(merged)
            }
            (Value::Object(_), None) => Err(Error::UnsupportedPatch(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml".into(),
            )),
            (other, _) => Err(of_other_type(other, "map[string]interface {}", "")),
        },
        PatchKind::Merge => Err(of_other_type(patch, "map[string]interface {}", "")),
        PatchKind::Apply => Err(Error::UnsupportedPatch("apply is not a plain patch".into())),
    }
}

/// Applies a JSON patch to a document. `text` is the text of the patch, if available.
pub(crate) fn apply_json(
    mut document: Value,
    patch: &Value,
    text: Option<&str>,
) -> Result<Value, Error> {
    match operations::apply(&mut document, read_json(patch)?, text)? {
        None => Ok(document),
        Some(problem) => Err(Error::PatchFailed(problem)),
    }
}

/// Like [`apply_json`], but returns `None` if a test of the patch fails.
pub(crate) fn apply_json_tested(
    mut document: Value,
    patch: &Value,
) -> Result<Option<Value>, Error> {
    let failed = operations::apply(&mut document, read_json(patch)?, None)?;
    Ok(failed.is_none().then_some(document))
}

/// Returns the operations of a JSON patch.
fn read_json(patch: &Value) -> Result<&[Value], Error> {
    const WHAT: &str = "error decoding patch: ";
    let Value::Array(operations) = patch else {
        return Err(of_other_type(patch, "[]handlers.jsonPatchOp", WHAT));
    };
    for operation in operations {
        let Value::Object(fields) = operation else {
            return Err(of_other_type(operation, "handlers.jsonPatchOp", WHAT));
        };
        for name in ["op", "path", "from"] {
            if let Some(other) = fields
                .get(name)
                .filter(|value| !value.is_string() && !value.is_null())
            {
                let found = crate::decode::json_type_name(other);
                return Err(Error::BadRequest(format!(
                    "{WHAT}json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
                )));
            }
        }
    }
    Ok(operations)
}

fn of_other_type(value: &Value, wanted: &str, of_what: &str) -> Error {
    let found = crate::decode::json_type_name(value);
    Error::BadRequest(format!(
        "{of_what}json: cannot unmarshal {found} into Go value of type {wanted}"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::kind::builtin;
    use serde_json::json;

    use super::*;

    fn json_patch(patch: Value) -> Result<Value, Error> {
        let object = json!({"spec": {"a": 1}});
        let kind = builtin("", "Pod").unwrap();
        apply(
            kind,
            PatchKind::Json,
            object.as_object().unwrap().clone(),
            &patch,
            None,
        )
    }

    #[test]
    fn applicable_json_patches_are_applied() {
        let patch = json!([{"op": "test", "path": "/spec/a", "value": 1},
            {"op": "replace", "path": "/spec/a", "value": 2}]);
        assert_eq!(json_patch(patch).unwrap(), json!({"spec": {"a": 2}}));
    }

    #[test]
    fn missing_fields_test_as_null() {
        let patch = json!([{"op": "test", "path": "/spec/b", "value": null},
            {"op": "add", "path": "/spec/b", "value": 2}]);
        assert_eq!(
            json_patch(patch.clone()).unwrap(),
            json!({"spec": {"a": 1, "b": 2}})
        );
        for path in ["/spec/a", "/none/b", "/spec/a/b"] {
            let patch = json!([{"op": "test", "path": path, "value": null}]);
            assert!(json_patch(patch).is_err(), "{path}");
        }
    }

    #[test]
    fn inapplicable_json_patches_are_422() {
        for patch in [
            json!([{"op": "test", "path": "/spec/a", "value": 2}]),
            json!([{"op": "remove", "path": "/spec/b"}]),
        ] {
            let error = json_patch(patch).unwrap_err();
            assert_eq!(error.status().code, 422);
        }
    }

    #[test]
    fn malformed_patches_are_400() {
        for patch in [json!({"a": 1}), json!("x"), json!(["x"])] {
            assert_eq!(json_patch(patch).unwrap_err().status().code, 400);
        }
        // Unknown operations are reported like operations that cannot be
        // applied.
        let jump = json!([{"op": "jump"}]);
        assert_eq!(json_patch(jump).unwrap_err().status().code, 422);
        for kind in [PatchKind::Merge, PatchKind::Strategic] {
            let pod = builtin("", "Pod").unwrap();
            let error = apply(pod, kind, Map::new(), &json!([]), None).unwrap_err();
            assert_eq!(error.status().code, 400, "{kind}");
        }
    }
}
