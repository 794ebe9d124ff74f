//! Label and field selectors, as they stand in a query string.

mod field;
mod label;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// A selector that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector {selector:?}: {problem}")]
pub struct SelectorError {
    selector: String,
    problem: String,
}
