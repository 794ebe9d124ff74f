//! Fields that are immutable after creation.

use longshore_model::CauseList;
use serde_json::Value;

use super::field_value::{Causes, FieldValue};
use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Validates that the selector has not changed.
pub(crate) fn selector(before: &Object, after: &Object, causes: &mut CauseList) {
    fixed(before, after, &["spec.selector"], causes);
}

/// Reports changed fields of the spec or of the object.
pub(crate) fn fixed(before: &Object, after: &Object, paths: &[&str], causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    for path in paths {
        let walk = |object| {
            let mut parts = path.split('.');
            let first = FieldValue::field(object, parts.next().unwrap_or_default());
            parts.fold(first, |at, part| at.get(part))
        };
        causes.immutable(&walk(before), &walk(after));
    }
}

/// Like [`fixed`], but without the new value in the message.
pub(crate) fn fixed_without_value(
    before: &Object,
    after: &Object,
    paths: &[&str],
    causes: &mut CauseList,
) {
    for path in paths {
        if json::at(before, path) != json::at(after, path) {
            causes.push(Cause::invalid(path, Value::Null, "field is immutable"));
        }
    }
}
