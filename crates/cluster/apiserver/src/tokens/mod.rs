//! Service account tokens: JSON Web Tokens that the server signs with a key and verifies on every
//! request.

mod check;
mod claims;
mod key;
mod refusal;
mod verified;

pub(crate) use check::authenticate;
use claims::{AnyClaims, SecretClaims};
pub(crate) use claims::{Claims, Kubernetes, Reference};
pub use key::TokenKey;
pub(crate) use refusal::Refusal;

/// The issuer of the tokens, which is also the audience of tokens for the API
/// server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The issuer of the tokens in Secrets, as in Kubernetes.
const SECRET_ISSUER: &str = "kubernetes/serviceaccount";
