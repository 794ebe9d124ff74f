//! Why a token is not accepted.

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It is none of this server's tokens.
    #[error("invalid bearer token")]
    Foreign,
    /// It was one, and does not count here and now.
    #[error("{0}")]
    Invalid(String),
}
