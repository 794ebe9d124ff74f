//! Service account tokens: JSON Web Tokens that the server signs with a key of
//! its own and verifies on every request.

mod check;
mod claims;
mod key;
mod refusal;

pub(crate) use check::authenticate;
pub(crate) use claims::{Claims, Kubernetes, Reference};
pub use key::TokenKey;
pub(crate) use refusal::Refusal;

/// Who issues the tokens, and the audience of those for the API server itself.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
