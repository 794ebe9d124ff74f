//! The reasons why a token is rejected.

/// The reason why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// This server did not issue the token.
    #[error("invalid bearer token")]
    Foreign,
    /// This server issued the token, but it is not valid here and now.
    #[error("{0}")]
    Invalid(String),
}
