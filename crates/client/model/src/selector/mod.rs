//! Label and field selectors as used in query strings.

mod condition;
mod field;
mod label;
mod parse;
mod structured;

pub use field::FieldSelector;
pub use label::LabelSelector;
pub use structured::{Requirement, StructuredSelector};

/// An invalid selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector {selector:?}: {problem}")]
pub struct SelectorError {
    selector: String,
    /// The text that Kubernetes puts before the problem.
    opening: String,
    problem: String,
}

impl SelectorError {
    /// The message of a Kubernetes API server for the same selector.
    ///
    /// ```
    /// use longshore_model::LabelSelector;
    /// let error = "app in web".parse::<LabelSelector>().unwrap_err();
    /// assert_eq!(error.server_message(), "unable to parse requirement: found 'web' expected: '('");
    /// ```
    #[must_use]
    pub fn server_message(&self) -> String {
        format!("{}{}", self.opening, self.problem)
    }
}
