//! Errors of certificate requests.

/// The reason why a certificate request cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The text is not a PEM block of a request.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    /// The request is malformed.
    #[error("unable to parse certificate request: {0}")]
    Malformed(String),
    /// The request was not signed with its key, or with an algorithm that is not
    /// supported.
    #[error("unable to verify certificate request signature: {0}")]
    Signature(&'static str),
    /// A key usage is unknown.
    #[error("unrecognized usage values: {0:?}")]
    Usages(Vec<String>),
    /// The authority cannot sign.
    #[error("failed to sign certificate: {0}")]
    Signing(String),
}
