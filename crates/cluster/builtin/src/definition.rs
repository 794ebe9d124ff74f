//! Reads the parts of a CustomResourceDefinition.

use serde_json::Value;

use crate::json::{self, Object};

/// The versions of a definition.
pub fn versions(definition: &Object) -> impl Iterator<Item = &Object> {
    json::at(definition, "spec.versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
}

/// Returns true if a condition of a definition is `True`.
#[must_use]
pub fn is_condition_true(definition: &Object, condition: &str) -> bool {
    json::at(definition, "status.conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|one| one["type"] == condition && one["status"] == "True")
}
