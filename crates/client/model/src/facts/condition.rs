//! Conditions.

use jiff::Timestamp;
use serde::Deserialize;

/// A condition of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason in CamelCase.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The time of the last change of the status.
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Returns true if the condition has this type and is true.
    #[must_use]
    pub fn is_true(&self, kind: &str) -> bool {
        self.kind == kind && self.status == "True"
    }
}
