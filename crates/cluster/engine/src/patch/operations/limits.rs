//! Limits that the operations of a patch share.

use serde_json::Value;

use crate::{
    Error,
    nesting::{NESTING, too_deep},
};

/// Maximum number of steps of a patch: visited nodes, except for the nodes of the patch itself, and
/// blocks of shifted list elements. They take about one second.
const MAX_STEPS: usize = 20_000_000;
/// Number of list elements that are shifted in one step: a kilobyte.
const ELEMENTS_PER_STEP: usize = 32;
/// Maximum number of levels of a document including managed fields, which add a
/// few.
const MAX_LEVELS: usize = NESTING + 4;

pub(super) struct Limits {
    /// Upper bound of the depth of any value in the document.
    deepest: usize,
    /// Remaining steps.
    steps: usize,
}

impl Limits {
    pub(super) fn of(document: &Value) -> Self {
        Self {
            deepest: depth(document),
            steps: MAX_STEPS,
        }
    }

    /// Counts that a value with `depth` levels is stored at a path.
    pub(super) fn put(&mut self, path: &str, depth: usize) -> Result<(), Error> {
        let depth = levels(path) + depth;
        self.deepest = self.deepest.max(depth);
        if depth > MAX_LEVELS {
            return Err(Error::BadRequest(too_deep()));
        }
        Ok(())
    }

    /// Counts that a value of the document is moved. Its depth is computed only if the bound for
    /// the whole document is not sufficient.
    pub(super) fn put_moved(&mut self, from: &str, path: &str, value: &Value) -> Result<(), Error> {
        let most = self.deepest.saturating_sub(levels(from));
        if levels(path) + most <= MAX_LEVELS {
            return self.put(path, most);
        }
        self.spend(nodes(value))?;
        self.put(path, depth(value))
    }

    /// Counts that elements of a list are shifted.
    pub(super) fn shift(&mut self, elements: usize) -> Result<(), Error> {
        self.spend(elements / ELEMENTS_PER_STEP)
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

/// The number of levels of a path.
fn levels(path: &str) -> usize {
    path.matches('/').count()
}

/// The number of levels of a value; 0 for a value without members.
pub(super) fn depth(value: &Value) -> usize {
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
