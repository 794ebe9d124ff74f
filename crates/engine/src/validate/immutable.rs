//! Fields that may not change after creation.

use longshore_model::StatusCause;
use serde_json::Value;

use super::at::{At, Causes};
use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Fields of the spec or of the object that may not change.
pub(super) fn fixed(
    before: &Object,
    after: &Object,
    paths: &[&str],
    causes: &mut Vec<StatusCause>,
) {
    let causes = &mut Causes(causes);
    for path in paths {
        let walk = |object| {
            let mut parts = path.split('.');
            let first = At::field(object, parts.next().unwrap_or_default());
            parts.fold(first, |at, part| at.get(part))
        };
        causes.immutable(&walk(before), &walk(after));
    }
}

/// As [`fixed`]; the new value is not shown.
pub(super) fn fixed_unshown(
    before: &Object,
    after: &Object,
    paths: &[&str],
    causes: &mut Vec<StatusCause>,
) {
    for path in paths {
        if json::at(before, path) != json::at(after, path) {
            causes.push(Cause::invalid(path, Value::Null, "field is immutable"));
        }
    }
}
