//! The identity of this server as a proxy: a client certificate of an authority that aggregated API
//! servers trust to name users in headers.

use std::sync::Arc;

use rcgen::{DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{
    remote::trust::Identity,
    tls::{Authority, TlsError},
};

/// The name in the certificate. Clusters of kubeadm use the same name.
pub(crate) const NAME: &str = "front-proxy-client";
/// Validity of the certificate in days.
const VALID_DAYS: i64 = 3650;

/// The certificate with its key, and the certificate of the authority in PEM format.
pub(super) struct FrontProxy {
    pub(super) authority_pem: String,
    pub(super) identity: Arc<Identity>,
}

impl FrontProxy {
    /// Creates an authority and a certificate, which exist only in memory.
    pub(super) fn new() -> Result<Self, TlsError> {
        let authority = Authority::ephemeral()?;
        let key = KeyPair::generate()?;
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, NAME);
        let certificate = authority.sign(&key, VALID_DAYS, |params| {
            params.distinguished_name = subject;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        Ok(Self {
            authority_pem: authority.ca_pem(),
            identity: Arc::new(Identity { chain, key }),
        })
    }
}
