//! JSON patch, with the rules of the library that Kubernetes uses (evanphx/json-patch 4): for
//! example, negative indices count from the end of a list, a missing field of an object is null,
//! and tests compare the text of strings and numbers. Limits on each operation and on the whole
//! patch bound the size of the document and the work.

mod compare;
mod limits;
mod place;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use compare::Texts;
use limits::{Limits, depth};
use place::Place;

use crate::Error;

/// Maximum number of operations in a patch, as in Kubernetes.
const MAX_OPERATIONS: usize = 10_000;
/// Maximum number of bytes that the copies of a patch may add, as in
/// Kubernetes.
const MAX_COPIED_BYTES: usize = 3 << 20;

/// The reason why an operation cannot be applied.
enum Failure {
    /// A test failed.
    Test(String),
    /// Another problem, with the message of the library.
    Problem(String),
    Limit(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Limit(error)
    }
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
}

/// Applies the operations of a JSON patch to a document, which must be an object or a list. Returns
/// the problem if a test fails. `text` is the text of the patch, if available. After an error or a
/// failed test, the document is in an unspecified state.
pub(super) fn apply(
    document: &mut Value,
    operations: &[Value],
    text: Option<&str>,
) -> Result<Option<String>, Error> {
    let count = operations.len();
    if count > MAX_OPERATIONS {
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    let mut patch = Patch {
        texts: Texts::of(operations, text),
        limits: Limits::of(document),
        copied: 0,
        document,
    };
    for (index, operation) in operations.iter().enumerate() {
        let nothing = Map::new();
        let operation = Operation(operation.as_object().unwrap_or(&nothing));
        match patch.apply(index, &operation) {
            Ok(()) => {}
            Err(Failure::Test(problem)) => return Ok(Some(problem)),
            Err(Failure::Problem(problem)) => return Err(Error::PatchFailed(problem)),
            Err(Failure::Limit(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// An operation whose fields have the right types.
struct Operation<'a>(&'a Map<String, Value>);

impl Operation<'_> {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }

    fn path(&self, what: &str) -> Result<&str, String> {
        let missing = || format!("{what} operation failed to decode path: missing value");
        self.text("path").ok_or_else(missing)
    }

    fn from(&self, what: &str) -> Result<&str, String> {
        let missing = || format!("{what} operation failed to decode from: missing value");
        self.text("from").ok_or_else(missing)
    }

    /// The value; null if it is missing.
    fn value(&self) -> Value {
        self.0.get("value").cloned().unwrap_or_default()
    }
}

/// A patch that is being applied.
struct Patch<'a> {
    document: &'a mut Value,
    texts: Texts<'a>,
    limits: Limits,
    copied: usize,
}

impl Patch<'_> {
    fn apply(&mut self, index: usize, operation: &Operation<'_>) -> Result<(), Failure> {
        match operation.text("op").unwrap_or("unknown") {
            "add" => {
                let path = operation.path("add")?;
                self.add(path, operation.value(), || {
                    format!("add operation does not apply: doc is missing path: {path:?}")
                })
            }
            "remove" => {
                let path = operation.path("remove")?;
                let place = Place::find(self.document, path).ok_or_else(|| {
                    format!("remove operation does not apply: doc is missing path: {path:?}: missing value")
                })?;
                self.limits.shift(place.shifted())?;
                let removed = place.remove();
                removed
                    .map_err(|problem| format!("error in remove for path: '{path}': {problem}"))?;
                Ok(())
            }
            "replace" => self.replace(operation),
            "move" => self.relocate(operation),
            "test" => self.test(index, operation),
            "copy" => self.copy(operation),
            other => Err(Failure::Problem(format!("Unexpected kind: {other}"))),
        }
    }

    /// Adds a value. `missing` is the message if the parent does not exist.
    fn add(
        &mut self,
        path: &str,
        value: Value,
        missing: impl Fn() -> String,
    ) -> Result<(), Failure> {
        self.limits.put(path, depth(&value))?;
        let place = Place::find(self.document, path);
        let place = place.ok_or_else(|| format!("{}: missing value", missing()))?;
        self.limits.shift(place.shifted())?;
        let added = place.add(value);
        added.map_err(|problem| format!("error in add for path: '{path}': {problem}").into())
    }

    fn replace(&mut self, operation: &Operation<'_>) -> Result<(), Failure> {
        let path = operation.path("replace")?;
        let value = operation.value();
        self.limits.put(path, depth(&value))?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                let problem = "replace operation value must be object or array";
                return Err(Failure::Problem(problem.to_owned()));
            }
            *self.document = value;
            return Ok(());
        }
        let place = Place::find(self.document, path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        place.set(value).map_err(|_| {
            let what = "replace operation does not apply: doc is missing key";
            Failure::Problem(format!("{what}: {path}: missing value"))
        })
    }

    fn relocate(&mut self, operation: &Operation<'_>) -> Result<(), Failure> {
        let from = operation.from("move")?;
        let place = Place::find(self.document, from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        self.limits.shift(place.shifted())?;
        let key = place.key().to_owned();
        let removed = place.remove();
        let value =
            removed.map_err(|problem| format!("error in move for path: '{key}': {problem}"))?;
        let path = operation.path("move")?;
        self.limits.put_moved(from, path, &value)?;
        let place = Place::find(self.document, path).ok_or_else(|| {
            format!("move operation does not apply: doc is missing destination path: {path}: missing value")
        })?;
        self.limits.shift(place.shifted())?;
        let added = place.add(value);
        added.map_err(|problem| format!("error in move for path: '{path}': {problem}").into())
    }

    fn copy(&mut self, operation: &Operation<'_>) -> Result<(), Failure> {
        let from = operation.from("copy")?;
        let place = Place::find(self.document, from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let found = place.get();
        let found =
            found.map_err(|problem| format!("error in copy for from: '{from}': {problem}"))?;
        // Null is free.
        self.copied += match found {
            Value::Null => 0,
            found => compare::encoded_length(found),
        };
        if self.copied > MAX_COPIED_BYTES {
            return Err(Failure::Problem(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED_BYTES}",
                self.copied
            )));
        }
        let value = found.clone();
        let path = operation.path("copy")?;
        self.add(path, value, || {
            format!("copy operation does not apply: doc is missing destination path: {path}")
        })
    }

    fn test(&mut self, index: usize, operation: &Operation<'_>) -> Result<(), Failure> {
        let path = operation.path("test")?;
        let given = operation.0.get("value");
        let found = if path.is_empty() {
            &*self.document
        } else {
            let place = Place::find(self.document, path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: missing value")
            })?;
            place
                .into_value()
                .map_err(|problem| format!("error in test for path: '{path}': {problem}"))?
        };
        let is_equal = match given {
            None => found.is_null(),
            Some(given) => self.texts.are_equal(index, found, given),
        };
        match is_equal {
            true => Ok(()),
            false => Err(Failure::Test(format!(
                "testing value {path} failed: test failed"
            ))),
        }
    }
}
