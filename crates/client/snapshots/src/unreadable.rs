//! The error of all functions.

/// A text does not conform to the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be read: {problem}")]
pub struct Unreadable {
    /// The response or its part.
    pub what: String,
    /// The problem.
    pub problem: String,
}

impl Unreadable {
    pub(crate) fn new(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self {
            what: what.into(),
            problem: problem.to_string(),
        }
    }
}
