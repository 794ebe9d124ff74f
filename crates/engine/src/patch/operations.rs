//! JSON patch: one operation after the other, none of which may make the
//! document grow without end.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::{
    Error,
    nesting::{NESTING, is_deeper, too_deep},
};

/// Operations in one patch, at most (as in Kubernetes).
const OPERATIONS: usize = 10_000;
/// Bytes that the copies of one patch may add, at most (as in Kubernetes).
const COPIED: usize = 3 << 20;

/// Applies a JSON patch to a document.
pub(super) fn apply(document: &mut Value, patch: &json_patch::Patch) -> Result<(), Error> {
    let count = patch.0.len();
    if count > OPERATIONS {
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS}, got {count}"
        )));
    }
    let mut copied = 0;
    for operation in &patch.0 {
        if tests_absence(operation, document) {
            continue;
        }
        check_depth(operation, document)?;
        if let PatchOperation::Copy(copy) = operation {
            let source = document.pointer(copy.from.as_str());
            copied += source.map_or(0, |value| value.to_string().len());
            if copied > COPIED {
                return Err(Error::PatchFailed(format!(
                    "unable to complete the copy: the accumulated size increase of copies is {copied}, exceeding the limit {COPIED}"
                )));
            }
        }
        json_patch::patch(document, std::slice::from_ref(operation))
            .map_err(|error| Error::PatchFailed(error.to_string()))?;
    }
    Ok(())
}

/// A value that is put somewhere must not be too deep there.
fn check_depth(operation: &PatchOperation, document: &Value) -> Result<(), Error> {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(moved) => (&moved.path, document.pointer(moved.from.as_str())),
        PatchOperation::Copy(copy) => (&copy.path, document.pointer(copy.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
    };
    // Managed fields have a few levels more.
    let levels = (NESTING + 4).checked_sub(path.count());
    match (levels, value) {
        (Some(levels), Some(value)) if is_deeper(value, levels) => {
            Err(Error::BadRequest(too_deep()))
        }
        (None, _) => Err(Error::BadRequest(too_deep())),
        _ => Ok(()),
    }
}

/// Whether this tests that a field of an object is null, and there is none:
/// Kubernetes lets that pass, and controllers add their finalizers so.
fn tests_absence(operation: &PatchOperation, document: &Value) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let Some((parent, field)) = test.path.split_back() else {
        return false;
    };
    let parent = document.pointer(parent.as_str()).and_then(Value::as_object);
    test.value.is_null()
        && parent.is_some_and(|parent| !parent.contains_key(field.decoded().as_ref()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn patched(operations: Vec<Value>) -> Result<Value, Error> {
        let mut document = json!({"a": {"text": "0123456789"}});
        let patch = serde_json::from_value(operations.into()).unwrap();
        apply(&mut document, &patch).map(|()| document)
    }

    #[test]
    fn rule_31_copies_do_not_double_a_document_for_ever() {
        let double = |n: usize| json!({"op": "copy", "from": "", "path": format!("/b{n}")});
        assert!(patched((0..10).map(double).collect()).is_ok());
        let error = patched((0..60).map(double).collect()).unwrap_err();
        assert_eq!(error.status().code, 422, "{error:?}");
    }

    #[test]
    fn rule_31_no_operation_makes_a_document_too_deep() {
        let add = |depth: usize| json!({"op": "add", "path": "/x".repeat(depth), "value": {}});
        assert!(patched((1..=NESTING).map(add).collect()).is_ok());
        let error = patched((1..=NESTING + 10).map(add).collect()).unwrap_err();
        assert_eq!(error.status().code, 400, "{error:?}");
        let mut operations: Vec<_> = (1..100).map(add).collect();
        operations.push(json!({"op": "add", "path": "/y", "value": {"z": {}}}));
        for op in ["copy", "move"] {
            let mut operations = operations.clone();
            operations.push(json!({"op": op, "from": "/x", "path": "/y/z"}));
            assert!(patched(operations.clone()).is_ok(), "{op}");
            operations.pop();
            operations.push(json!({"op": "copy", "from": "/x", "path": "/w"}));
            operations
                .push(json!({"op": op, "from": "/x", "path": format!("/w{}", "/x".repeat(90))}));
            let error = patched(operations).unwrap_err();
            assert_eq!(error.status().code, 400, "{op}: {error:?}");
        }
    }
}
