//! The interface to the key that signs tokens of service accounts.

use std::{fmt, sync::Arc};

/// The subject of a token: a service account, and the Secret that contains the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSubject<'a> {
    /// The namespace of the service account and the Secret.
    pub namespace: &'a str,
    /// The name of the service account.
    pub account: &'a str,
    /// The uid of the service account.
    pub account_uid: &'a str,
    /// The name of the Secret.
    pub secret: &'a str,
}

/// Signs tokens that the API server accepts.
pub trait AccountTokenSigner: Send + Sync {
    /// Returns a token without expiry.
    ///
    /// # Errors
    /// The key cannot sign.
    fn sign(&self, subject: &TokenSubject<'_>) -> Result<String, String>;
}

/// A shared [`AccountTokenSigner`]. Two values are equal if they share the same signer.
#[derive(Clone)]
pub struct TokenSigner(pub Arc<dyn AccountTokenSigner>);

impl fmt::Debug for TokenSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSigner").finish_non_exhaustive()
    }
}

impl PartialEq for TokenSigner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TokenSigner {}
