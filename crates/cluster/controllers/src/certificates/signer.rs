//! The interface to the certificate authority of a cluster.

use std::{fmt, ops::Range, sync::Arc};

use jiff::Timestamp;

/// The contents of a certificate request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateFacts {
    /// The common name of the subject.
    pub common_name: String,
    /// The organizations of the subject.
    pub organizations: Vec<String>,
    /// True if there are alternative DNS names.
    pub has_dns_names: bool,
    /// True if there are alternative IP addresses.
    pub has_ip_addresses: bool,
    /// True if there are alternative email addresses.
    pub has_email_addresses: bool,
    /// True if there are alternative URIs.
    pub has_uris: bool,
}

/// Signs certificates with the authority of a cluster.
pub trait CertificateSigner: Send + Sync {
    /// Reads a request in PEM.
    ///
    /// # Errors
    /// The request is malformed, or its signature is not valid.
    fn read(&self, request: &[u8]) -> Result<CertificateFacts, String>;

    /// Signs a certificate for a request and returns it in PEM.
    ///
    /// # Errors
    /// The request is malformed, its signature is not valid, or the authority cannot sign.
    fn sign(
        &self,
        request: &[u8],
        usages: &[String],
        validity: Range<Timestamp>,
    ) -> Result<String, String>;
}

/// A shared [`CertificateSigner`]. Two values are equal if they share the same signer.
#[derive(Clone)]
pub struct Signer(pub Arc<dyn CertificateSigner>);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl PartialEq for Signer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Signer {}
