//! JSON patch: one operation after the other, none of which may make the
//! document grow without end.

use json_patch::{
    PatchOperation,
    jsonptr::{Pointer, PointerBuf, Token},
};
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
        let operation = &usual(operation, document);
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

/// An operation whose paths have numbers as JSON pointers write them. API
/// servers count from the end, too, and know other ways to write a number.
fn usual(operation: &PatchOperation, document: &Value) -> PatchOperation {
    let mut operation = operation.clone();
    match &mut operation {
        PatchOperation::Add(add) => plain(&mut add.path, document, true),
        PatchOperation::Remove(remove) => plain(&mut remove.path, document, false),
        PatchOperation::Replace(replace) => plain(&mut replace.path, document, false),
        PatchOperation::Test(test) => plain(&mut test.path, document, false),
        PatchOperation::Copy(copy) => {
            plain(&mut copy.from, document, false);
            plain(&mut copy.path, document, true);
        }
        PatchOperation::Move(moved) => {
            plain(&mut moved.from, document, false);
            if is_strange(&moved.path) {
                // It is put in when it is no longer where it was.
                let mut without = document.clone();
                let _ = moved.from.delete(&mut without);
                plain(&mut moved.path, &without, true);
            }
        }
    }
    operation
}

/// Whether a part of a path may be a number that is not written plainly.
fn is_strange(path: &Pointer) -> bool {
    let text = path.as_str().as_bytes();
    text.windows(3).any(|part| {
        part[0] == b'/' && matches!(part[1], b'-' | b'+' | b'0') && part[2].is_ascii_digit()
    })
}

/// Writes the numbers of a path plainly, as far as the document has lists there.
/// An element that is added at the end has the number after the last.
fn plain(path: &mut PointerBuf, document: &Value, adds: bool) {
    if !is_strange(path) {
        return;
    }
    let mut at = Some(document);
    let mut tokens = Vec::new();
    let last = path.count().saturating_sub(1);
    for (index, token) in path.tokens().enumerate() {
        let mut token = token.to_owned();
        if let Some(Value::Array(list)) = at {
            let end = list.len() + usize::from(adds && index == last);
            if let Some(number) = element(token.encoded(), end) {
                token = Token::from(number);
            }
        }
        at = at.and_then(|at| match at {
            Value::Array(list) => list.get(token.encoded().parse::<usize>().ok()?),
            Value::Object(fields) => fields.get(token.decoded().as_ref()),
            _ => None,
        });
        tokens.push(token);
    }
    *path = PointerBuf::from_tokens(tokens);
}

/// The number of an element; below zero it is counted from the end.
fn element(text: &str, end: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let distance = usize::try_from(number.unsigned_abs()).ok()?;
    if number < 0 {
        end.checked_sub(distance)
    } else {
        Some(distance)
    }
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

    /// As a real API server answers, where it does not break down.
    #[test]
    fn rule_16_elements_are_counted_from_the_end_as_well() {
        let one = |operation: Value| {
            let mut document = json!({"a": ["x", "y", ["z"]], "b": {"-1": 1}});
            let patch = serde_json::from_value(json!([operation])).unwrap();
            apply(&mut document, &patch).map(|()| document["a"].clone())
        };
        let to = |op: &str, path: &str| one(json!({"op": op, "path": path, "value": "v"}));
        for (op, path, expected) in [
            ("remove", "/a/-1", json!(["x", "y"])),
            ("remove", "/a/-3", json!(["y", ["z"]])),
            ("remove", "/a/01", json!(["x", ["z"]])),
            ("replace", "/a/-2", json!(["x", "v", ["z"]])),
            ("replace", "/a/-1/-1", json!(["x", "y", ["v"]])),
            ("add", "/a/-1", json!(["x", "y", ["z"], "v"])),
            ("add", "/a/-2", json!(["x", "y", "v", ["z"]])),
            ("add", "/a/-4", json!(["v", "x", "y", ["z"]])),
            ("add", "/a/+1", json!(["x", "v", "y", ["z"]])),
            ("add", "/b/-1", json!(["x", "y", ["z"]])),
        ] {
            assert_eq!(to(op, path).unwrap(), expected, "{op} {path}");
        }
        for (op, path) in [
            ("remove", "/a/-4"),
            ("replace", "/a/-4"),
            ("add", "/a/-5"),
            ("test", "/a/-9"),
        ] {
            assert_eq!(to(op, path).unwrap_err().status().code, 422, "{op} {path}");
        }
        assert!(one(json!({"op": "test", "path": "/a/-3", "value": "x"})).is_ok());
        let moved = |from, path| one(json!({"op": "move", "from": from, "path": path})).unwrap();
        assert_eq!(moved("/a/-3", "/a/-1"), json!(["y", ["z"], "x"]));
        assert_eq!(moved("/b/-1", "/a/-4"), json!([1, "x", "y", ["z"]]));
        let copied = one(json!({"op": "copy", "from": "/a/-2", "path": "/a/-1"}));
        assert_eq!(copied.unwrap(), json!(["x", "y", ["z"], "y"]));
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
