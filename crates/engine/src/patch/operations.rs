//! JSON patch: applies operations one by one. Limits on each operation and on
//! the whole patch bound the size of the document and the work.

use json_patch::{
    AddOperation, PatchErrorKind, PatchOperation,
    jsonptr::{Pointer, PointerBuf, Token},
};
use serde_json::Value;

use crate::{
    Error,
    nesting::{NESTING, too_deep},
};

/// Maximum number of operations in a patch, as in Kubernetes.
const MAX_OPERATIONS: usize = 10_000;
/// Maximum number of bytes that the copies of a patch may add, as in
/// Kubernetes.
const MAX_COPIED_BYTES: usize = 3 << 20;
/// Maximum number of steps of a patch: nodes visited in addition to the patch's
/// own, and blocks of shifted list elements. They take about one second.
const MAX_STEPS: usize = 20_000_000;
/// Number of list elements that are shifted in one step: a kilobyte.
const ELEMENTS_PER_STEP: usize = 32;

/// Applies a JSON patch to a document. After an error, the document is in an
/// unspecified state.
pub(super) fn apply(document: &mut Value, patch: json_patch::Patch) -> Result<(), Error> {
    match apply_tested(document, patch)? {
        None => Ok(()),
        Some(problem) => Err(Error::PatchFailed(problem)),
    }
}

/// As [`apply`], but returns the problem of a test that failed.
pub(super) fn apply_tested(
    document: &mut Value,
    patch: json_patch::Patch,
) -> Result<Option<String>, Error> {
    let count = patch.0.len();
    if count > MAX_OPERATIONS {
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    let mut copied = 0;
    let mut limits = Limits {
        deepest: depth(document),
        steps: MAX_STEPS,
    };
    for mut operation in patch.0 {
        normalize(&mut operation, document, &mut limits)?;
        if is_absence_test(&operation, document) {
            continue;
        }
        limits.check(&operation, document)?;
        if let PatchOperation::Copy(copy) = &operation {
            let source = document.pointer(copy.from.as_str());
            copied += source.map_or(0, |value| value.to_string().len());
            if copied > MAX_COPIED_BYTES {
                return Err(Error::PatchFailed(format!(
                    "unable to complete the copy: the accumulated size increase of copies is {copied}, exceeding the limit {MAX_COPIED_BYTES}"
                )));
            }
        }
        // No copy for a rollback is needed: the document is dropped if the
        // patch fails.
        let applied = json_patch::patch_unsafe(document, std::slice::from_ref(&operation));
        match applied {
            Ok(()) => {}
            Err(error) if matches!(error.kind, PatchErrorKind::TestFailed) => {
                return Ok(Some(error.to_string()));
            }
            Err(error) => return Err(Error::PatchFailed(error.to_string())),
        }
    }
    Ok(None)
}

/// Rewrites the array indices of an operation as JSON pointers define them. API
/// servers also accept negative indices and other notations of numbers.
fn normalize(
    operation: &mut PatchOperation,
    document: &mut Value,
    limits: &mut Limits,
) -> Result<(), Error> {
    match operation {
        PatchOperation::Add(add) => normalize_indices(&mut add.path, document, true),
        PatchOperation::Remove(remove) => normalize_indices(&mut remove.path, document, false),
        PatchOperation::Replace(replace) => {
            normalize_indices(&mut replace.path, document, false);
            // As in Kubernetes, replacing a missing field adds it.
            if is_absent(&replace.path, document) {
                let (path, value) = (replace.path.clone(), replace.value.take());
                *operation = PatchOperation::Add(AddOperation { path, value });
            }
        }
        PatchOperation::Test(test) => normalize_indices(&mut test.path, document, false),
        PatchOperation::Copy(copy) => {
            normalize_indices(&mut copy.from, document, false);
            normalize_indices(&mut copy.path, document, true);
            // As in Kubernetes, the copy of a missing field is null.
            if is_absent(&copy.from, document) {
                let (path, value) = (std::mem::take(&mut copy.path), Value::Null);
                *operation = PatchOperation::Add(AddOperation { path, value });
            }
        }
        PatchOperation::Move(moved) => {
            normalize_indices(&mut moved.from, document, false);
            // Such an index refers to the list without the moved element, so
            // remove the element first.
            if may_have_nonstandard_index(&moved.path) {
                limits.shifts(&moved.from, document)?;
                if let Some(value) = moved.from.delete(document) {
                    let mut path = std::mem::take(&mut moved.path);
                    normalize_indices(&mut path, document, true);
                    *operation = PatchOperation::Add(AddOperation { path, value });
                }
            }
        }
    }
    Ok(())
}

/// Whether a path may contain an index in a nonstandard notation.
fn may_have_nonstandard_index(path: &Pointer) -> bool {
    let text = path.as_str().as_bytes();
    text.windows(3).any(|part| {
        part[0] == b'/' && matches!(part[1], b'-' | b'+' | b'0') && part[2].is_ascii_digit()
    })
}

/// Normalizes the indices of a path where the document has lists. The index
/// that appends an element is the length of the list.
fn normalize_indices(path: &mut PointerBuf, document: &Value, adds: bool) {
    if !may_have_nonstandard_index(path) {
        return;
    }
    let mut at = Some(document);
    let mut tokens = Vec::new();
    let last = path.count().saturating_sub(1);
    for (index, token) in path.tokens().enumerate() {
        let mut token = token.to_owned();
        if let Some(Value::Array(list)) = at {
            let end = list.len() + usize::from(adds && index == last);
            if let Some(number) = parse_index(token.encoded(), end) {
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

/// Parses an index; negative ones count from the end.
fn parse_index(text: &str, end: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    let distance = usize::try_from(number.unsigned_abs()).ok()?;
    if number < 0 {
        end.checked_sub(distance)
    } else {
        Some(distance)
    }
}

/// Maximum number of levels of a document including managed fields, which add a
/// few.
const MAX_LEVELS: usize = NESTING + 4;

/// Limits shared by the operations of a patch.
struct Limits {
    /// Upper bound of the depth of any value in the document.
    deepest: usize,
    /// Remaining steps.
    steps: usize,
}

impl Limits {
    /// Accounts for the work of an operation and checks that a value does not
    /// become nested too deeply.
    fn check(&mut self, operation: &PatchOperation, document: &Value) -> Result<(), Error> {
        match operation {
            PatchOperation::Add(add) => {
                self.shifts(&add.path, document)?;
                self.put(&add.path, depth(&add.value))
            }
            PatchOperation::Replace(replace) => self.put(&replace.path, depth(&replace.value)),
            PatchOperation::Move(moved) => {
                self.shifts(&moved.from, document)?;
                self.shifts(&moved.path, document)?;
                self.put_from(&moved.from, &moved.path, document)
            }
            PatchOperation::Copy(copy) => {
                self.shifts(&copy.path, document)?;
                self.put_from(&copy.from, &copy.path, document)
            }
            PatchOperation::Remove(remove) => self.shifts(&remove.path, document),
            PatchOperation::Test(_) => Ok(()),
        }
    }

    /// A value with `depth` levels is stored at a path.
    fn put(&mut self, path: &Pointer, depth: usize) -> Result<(), Error> {
        let depth = path.count() + depth;
        self.deepest = self.deepest.max(depth);
        if depth > MAX_LEVELS {
            return Err(Error::BadRequest(too_deep()));
        }
        Ok(())
    }

    /// A value of the document is stored at a path. Its depth is computed only
    /// if the bound for the whole document is not sufficient.
    fn put_from(&mut self, from: &Pointer, path: &Pointer, document: &Value) -> Result<(), Error> {
        let most = self.deepest.saturating_sub(from.count());
        if path.count() + most <= MAX_LEVELS {
            return self.put(path, most);
        }
        let Some(value) = document.pointer(from.as_str()) else {
            return self.put(path, 0);
        };
        self.spend(nodes(value))?;
        self.put(path, depth(value))
    }

    /// Elements of a list after the path are shifted.
    fn shifts(&mut self, path: &Pointer, document: &Value) -> Result<(), Error> {
        let Some((parent, place)) = path.split_back() else {
            return Ok(());
        };
        match document.pointer(parent.as_str()) {
            Some(Value::Array(list)) => {
                let place = place.encoded().parse().unwrap_or(list.len());
                self.spend(list.len().saturating_sub(place) / ELEMENTS_PER_STEP)
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Error::TooLarge(
                "the operations of the JSON patch move too many values: send several patches"
                    .into(),
            )),
        }
    }
}

/// The number of levels of a value; 0 for a value without members.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(list) => list.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// The number of nodes in a value.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Whether the operation tests that a missing field is null. Kubernetes accepts
/// this, and controllers use it to add finalizers.
fn is_absence_test(operation: &PatchOperation, document: &Value) -> bool {
    matches!(operation, PatchOperation::Test(test)
        if test.value.is_null() && is_absent(&test.path, document))
}

/// Whether a path refers to a field that its object does not have.
fn is_absent(path: &Pointer, document: &Value) -> bool {
    path.split_back().is_some_and(|(parent, field)| {
        let parent = document.pointer(parent.as_str()).and_then(Value::as_object);
        parent.is_some_and(|parent| !parent.contains_key(field.decoded().as_ref()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn patched(operations: Vec<Value>) -> Result<Value, Error> {
        let mut document = json!({"a": {"text": "0123456789"}});
        let patch = serde_json::from_value(operations.into()).unwrap();
        apply(&mut document, patch).map(|()| document)
    }

    /// Expectations from a real API server, except where it panics.
    #[test]
    fn rule_16_negative_indices_count_from_the_end() {
        let one = |operation: Value| {
            let mut document = json!({"a": ["x", "y", ["z"]], "b": {"-1": 1}});
            let patch = serde_json::from_value(json!([operation])).unwrap();
            apply(&mut document, patch).map(|()| document["a"].clone())
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
            ("replace", "/b/none", json!(["x", "y", ["z"]])),
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

    /// Expectations from evanphx/json-patch 4, which Kubernetes uses.
    #[test]
    fn operations_are_read_as_by_kubernetes() {
        for (operations, expected) in [
            (
                json!([{"op": "add", "path": "/x"}]),
                json!({"s": "a", "x": null}),
            ),
            (json!([{"op": "replace", "path": "/s"}]), json!({"s": null})),
            (
                json!([{"op": "test", "path": "/x"}, {"op": "add", "path": "/y", "value": 1}]),
                json!({"s": "a", "y": 1}),
            ),
            (
                json!([{"op": "copy", "from": "/x", "path": "/y"}]),
                json!({"s": "a", "y": null}),
            ),
            (
                json!([{"op": "add", "path": "/a~b~2~", "value": 1}]),
                json!({"s": "a", "a~b~2~": 1}),
            ),
            (
                json!([{"op": "add", "path": "/a~1b~0", "value": 1}]),
                json!({"s": "a", "a/b~": 1}),
            ),
            (json!([{"op": "remove", "path": "ignored/s"}]), json!({})),
        ] {
            let patched = super::super::apply_json(json!({"s": "a"}), &operations);
            assert_eq!(patched.unwrap(), expected, "{operations}");
        }
        for operations in [
            json!([{"op": "test", "path": "/s"}]),
            json!([{"op": "move", "from": "/x", "path": "/y"}]),
            json!([{"op": "copy", "from": "/x/y", "path": "/y"}]),
            json!([{"op": "remove", "path": "/x"}]),
            json!([{"op": "remove", "path": "s"}]),
        ] {
            let refused = super::super::apply_json(json!({"s": "a"}), &operations);
            assert_eq!(refused.unwrap_err().status().code, 422, "{operations}");
        }
    }

    /// Ten thousand moves within a list. The time limit is generous because the
    /// machine may be busy.
    #[test]
    fn operations_on_large_documents_are_fast() {
        let begin = std::time::Instant::now();
        let list: Vec<Value> = (0..40_000).map(|n| json!({"n": n})).collect();
        for (from, path) in [("/a/-1", "/a/-2"), ("/a/0", "/a/39999"), ("/a/0", "/a/-1")] {
            let mut document = json!({"a": list});
            let operation = json!({"op": "move", "from": from, "path": path});
            let patch = serde_json::from_value(vec![operation; 10_000].into()).unwrap();
            apply(&mut document, patch).unwrap();
            assert_eq!(document["a"].as_array().unwrap().len(), 40_000);
        }
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }

    #[test]
    fn the_total_work_of_a_patch_is_limited() {
        let begin = std::time::Instant::now();
        let mut document = json!({"a": vec![0; 700_000]});
        let operation = json!({"op": "move", "from": "/a/0", "path": "/a/-"});
        let patch = serde_json::from_value(vec![operation; 10_000].into()).unwrap();
        let error = apply(&mut document, patch).unwrap_err();
        assert_eq!(error.status().code, 413, "{error:?}");
        // Moving between levels, which requires every depth to be computed.
        let mut document = json!({"x": {"y": 1}, "a": vec![0; 100_000]});
        let deep = |from: &str, path: &str| json!({"op": "move", "from": from, "path": path});
        let mut operations: Vec<_> = (2..90)
            .map(|n| json!({"op": "add", "path": "/x".repeat(n), "value": {}}))
            .collect();
        let bottom = format!("{}/a", "/x".repeat(89));
        for _ in 0..4000 {
            operations.push(deep("/a", &bottom));
            operations.push(deep(&bottom, "/a"));
        }
        let patch = serde_json::from_value(operations.into()).unwrap();
        assert_eq!(apply(&mut document, patch).unwrap_err().status().code, 413);
        assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    }

    #[test]
    fn rule_31_copies_cannot_grow_a_document_without_limit() {
        let double = |n: usize| json!({"op": "copy", "from": "", "path": format!("/b{n}")});
        assert!(patched((0..10).map(double).collect()).is_ok());
        let error = patched((0..60).map(double).collect()).unwrap_err();
        assert_eq!(error.status().code, 422, "{error:?}");
    }

    #[test]
    fn rule_31_operations_cannot_exceed_the_depth_limit() {
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
