//! Errors of evaluations.

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A function was called with values of types that it does not support.
    #[error("no such overload")]
    NoSuchOverload,
    /// The evaluation cost more than its limit.
    #[error("operation cancelled: actual cost limit exceeded")]
    TooCostly,
    /// Another error, with the message of Kubernetes.
    #[error("{0}")]
    Other(String),
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    pub(crate) fn no_such_key(key: &str) -> Self {
        Self::Other(format!("no such key: {key}"))
    }
}
