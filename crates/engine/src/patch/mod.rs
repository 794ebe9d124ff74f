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

/// Whether a patch reads or writes `metadata.managedFields`. They are expensive
/// to decode, so other patches are applied to a document without them.
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

/// Applies a patch to an object of a kind.
pub(crate) fn apply(
    kind: &KindInfo,
    patch_kind: PatchKind,
    object: Map<String, Value>,
    patch: &Value,
) -> Result<Value, Error> {
    let mut document = Value::Object(object);
    match patch_kind {
        // Equivalent to an empty patch.
        PatchKind::Json | PatchKind::Strategic if patch.is_null() => Ok(document),
        PatchKind::Json => apply_json(document, patch),
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

/// Applies a JSON patch to a document.
pub(crate) fn apply_json(mut document: Value, patch: &Value) -> Result<Value, Error> {
    operations::apply(&mut document, read_json(patch)?)?;
    Ok(document)
}

/// As [`apply_json`]; returns `None` if a test of the patch fails.
pub(crate) fn apply_json_tested(
    mut document: Value,
    patch: &Value,
) -> Result<Option<Value>, Error> {
    let failed = operations::apply_tested(&mut document, read_json(patch)?)?;
    Ok(failed.is_none().then_some(document))
}

fn read_json(patch: &Value) -> Result<json_patch::Patch, Error> {
    let Value::Array(listed) = patch else {
        return Err(of_other_type(
            patch,
            "[]handlers.jsonPatchOp",
            "error decoding patch: ",
        ));
    };
    if let Some(odd) = listed.iter().find(|one| !one.is_object()) {
        return Err(of_other_type(
            odd,
            "handlers.jsonPatchOp",
            "error decoding patch: ",
        ));
    }
    let listed = listed.iter().map(completed).collect();
    // Unknown operations are reported like operations that cannot be
    // applied.
    serde_json::from_value(Value::Array(listed))
        .map_err(|error| Error::PatchFailed(error.to_string()))
}

/// Returns an operation as Kubernetes reads it: a missing value is null, `~` is itself unless it
/// begins a known escape, and a path is what follows its first slash.
fn completed(operation: &Value) -> Value {
    let mut operation = operation.clone();
    if let Value::Object(fields) = &mut operation {
        let has_value = matches!(fields.get("op"), Some(Value::String(op)) if matches!(op.as_str(), "add" | "replace" | "test"));
        if has_value {
            fields.entry("value").or_insert(Value::Null);
        }
        for name in ["path", "from"] {
            if let Some(Value::String(path)) = fields.get_mut(name) {
                *path = completed_path(path);
            }
        }
    }
    operation
}

fn completed_path(path: &str) -> String {
    let path = path.find('/').map_or(path, |slash| &path[slash..]);
    let mut escaped = String::with_capacity(path.len());
    let mut parts = path.split('~');
    escaped.extend(parts.next());
    for part in parts {
        let known = part.starts_with(['0', '1']);
        escaped.push_str(if known { "~" } else { "~0" });
        escaped.push_str(part);
    }
    escaped
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
            let error = apply(pod, kind, Map::new(), &json!([])).unwrap_err();
            assert_eq!(error.status().code, 400, "{kind}");
        }
    }
}
