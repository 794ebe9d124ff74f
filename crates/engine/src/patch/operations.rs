//! JSON patch: one operation after the other, none of which may make the
//! document grow without end. What the operations do together is bounded, too.

use json_patch::{
    AddOperation, PatchOperation,
    jsonptr::{Pointer, PointerBuf, Token},
};
use serde_json::Value;

use crate::{
    Error,
    nesting::{NESTING, too_deep},
};

/// Operations in one patch, at most (as in Kubernetes).
const OPERATIONS: usize = 10_000;
/// Bytes that the copies of one patch may add, at most (as in Kubernetes).
const COPIED: usize = 3 << 20;
/// Steps that one patch may take, at most: nodes that are looked at beside the
/// patch's own, and blocks of list elements that are shifted. They take about
/// a second.
const STEPS: usize = 20_000_000;
/// List elements that are shifted in one step: a kilobyte.
const BLOCK: usize = 32;

/// Applies a JSON patch to a document. After an error the document is in an
/// unspecified state.
pub(super) fn apply(document: &mut Value, patch: json_patch::Patch) -> Result<(), Error> {
    let count = patch.0.len();
    if count > OPERATIONS {
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS}, got {count}"
        )));
    }
    let mut copied = 0;
    let mut limits = Limits {
        deepest: depth(document),
        steps: STEPS,
    };
    for mut operation in patch.0 {
        usual(&mut operation, document, &mut limits)?;
        if tests_absence(&operation, document) {
            continue;
        }
        limits.check(&operation, document)?;
        if let PatchOperation::Copy(copy) = &operation {
            let source = document.pointer(copy.from.as_str());
            copied += source.map_or(0, |value| value.to_string().len());
            if copied > COPIED {
                return Err(Error::PatchFailed(format!(
                    "unable to complete the copy: the accumulated size increase of copies is {copied}, exceeding the limit {COPIED}"
                )));
            }
        }
        // Without a copy of what it changes: the document of a failed patch is
        // dropped.
        json_patch::patch_unsafe(document, std::slice::from_ref(&operation))
            .map_err(|error| Error::PatchFailed(error.to_string()))?;
    }
    Ok(())
}

/// Gives an operation paths with numbers as JSON pointers write them. API
/// servers count from the end, too, and know other ways to write a number.
fn usual(
    operation: &mut PatchOperation,
    document: &mut Value,
    limits: &mut Limits,
) -> Result<(), Error> {
    match operation {
        PatchOperation::Add(add) => plain(&mut add.path, document, true),
        PatchOperation::Remove(remove) => plain(&mut remove.path, document, false),
        PatchOperation::Replace(replace) => {
            plain(&mut replace.path, document, false);
            // A field that is not there is added (as in Kubernetes).
            if is_absent(&replace.path, document) {
                let (path, value) = (replace.path.clone(), replace.value.take());
                *operation = PatchOperation::Add(AddOperation { path, value });
            }
        }
        PatchOperation::Test(test) => plain(&mut test.path, document, false),
        PatchOperation::Copy(copy) => {
            plain(&mut copy.from, document, false);
            plain(&mut copy.path, document, true);
        }
        PatchOperation::Move(moved) => {
            plain(&mut moved.from, document, false);
            // Such a number counts the elements without the one that moves, so
            // this is taken out first.
            if is_strange(&moved.path) {
                limits.shifts(&moved.from, document)?;
                if let Some(value) = moved.from.delete(document) {
                    let mut path = std::mem::take(&mut moved.path);
                    plain(&mut path, document, true);
                    *operation = PatchOperation::Add(AddOperation { path, value });
                }
            }
        }
    }
    Ok(())
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

/// Levels of a document, managed fields included: they have a few more.
const LEVELS: usize = NESTING + 4;

/// What the operations of one patch have in common.
struct Limits {
    /// No value of the document is deeper.
    deepest: usize,
    /// Steps that are left.
    steps: usize,
}

impl Limits {
    /// Counts the work of an operation; a value that is put somewhere must not
    /// be too deep there.
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

    /// A value of so many levels is put at a path.
    fn put(&mut self, path: &Pointer, depth: usize) -> Result<(), Error> {
        let depth = path.count() + depth;
        self.deepest = self.deepest.max(depth);
        if depth > LEVELS {
            return Err(Error::BadRequest(too_deep()));
        }
        Ok(())
    }

    /// A value of the document is put at a path. Its own depth is looked for
    /// only where that of the document does not settle it.
    fn put_from(&mut self, from: &Pointer, path: &Pointer, document: &Value) -> Result<(), Error> {
        let most = self.deepest.saturating_sub(from.count());
        if path.count() + most <= LEVELS {
            return self.put(path, most);
        }
        let Some(value) = document.pointer(from.as_str()) else {
            return self.put(path, 0);
        };
        self.spend(nodes(value))?;
        self.put(path, depth(value))
    }

    /// The elements of a list behind a path are shifted.
    fn shifts(&mut self, path: &Pointer, document: &Value) -> Result<(), Error> {
        let Some((parent, place)) = path.split_back() else {
            return Ok(());
        };
        match document.pointer(parent.as_str()) {
            Some(Value::Array(list)) => {
                let place = place.encoded().parse().unwrap_or(list.len());
                self.spend(list.len().saturating_sub(place) / BLOCK)
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

/// Levels of a value; 0 for one that has nothing in it.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(list) => list.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// The value and all in it.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Whether this tests that a field of an object is null, and there is none:
/// Kubernetes lets that pass, and controllers add their finalizers so.
fn tests_absence(operation: &PatchOperation, document: &Value) -> bool {
    matches!(operation, PatchOperation::Test(test)
        if test.value.is_null() && is_absent(&test.path, document))
}

/// Whether a path leads to a field that its object does not have.
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

    /// As a real API server answers, where it does not break down.
    #[test]
    fn rule_16_elements_are_counted_from_the_end_as_well() {
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

    /// Ten thousand moves within a list; the limit of time is generous, for a
    /// machine that is busy with other things.
    #[test]
    fn operations_on_large_documents_take_little_time() {
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
    fn what_all_operations_move_is_bounded() {
        let begin = std::time::Instant::now();
        let mut document = json!({"a": vec![0; 700_000]});
        let operation = json!({"op": "move", "from": "/a/0", "path": "/a/-"});
        let patch = serde_json::from_value(vec![operation; 10_000].into()).unwrap();
        let error = apply(&mut document, patch).unwrap_err();
        assert_eq!(error.status().code, 413, "{error:?}");
        // Up and down between levels, where each depth must be looked for.
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
