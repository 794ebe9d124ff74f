//! Client certificates: a certificate signed by the cluster's authority
//! authenticates a user. The subject's common name is the user name and its
//! organizations are the groups, as in Kubernetes.

use std::{path::Path, sync::Arc, time::Duration};

use rcgen::{DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::{
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::danger::ClientCertVerifier,
};
use sha2::{Digest, Sha256};

use crate::{
    distinguished_name::{COMMON_NAME, ORGANIZATION, elements, name_attributes},
    tls::{self, Authority, TlsError},
    user::{ADMINISTRATOR, AUTHENTICATED, MASTERS, User},
};

/// The administrator's certificate in the cluster's certificate directory.
const CERTIFICATE_FILE: &str = "admin.crt";
/// The administrator's key in the cluster's certificate directory.
const KEY_FILE: &str = "admin.key";
/// Validity of a new client certificate in days.
const VALID_DAYS: i64 = 3650;
/// A stored certificate with less remaining validity is replaced.
const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A client certificate and its key, both in PEM format. Does not implement
/// `Debug` because the key is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// For `client-certificate-data`.
    pub certificate: String,
    /// For `client-key-data`.
    pub key: String,
}

impl Authority {
    /// Loads the administrator's client certificate from a directory
    /// (`admin.crt`, `admin.key`, mode 0600) or creates it there. A certificate
    /// that is not signed by the authority or is about to expire is replaced.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn administrator(&self, dir: &Path) -> Result<ClientCertificate, TlsError> {
        let (certificate_path, key_path) = (dir.join(CERTIFICATE_FILE), dir.join(KEY_FILE));
        if certificate_path.exists() && key_path.exists() {
            let known = ClientCertificate {
                certificate: tls::read(&certificate_path)?,
                key: tls::read(&key_path)?,
            };
            if self.is_usable(&known) {
                return Ok(known);
            }
        }
        tls::create_dir(dir)?;
        let made = self.client(ADMINISTRATOR, MASTERS)?;
        tls::write_private(&key_path, &made.key)?;
        tls::write_private(&certificate_path, &made.certificate)?;
        Ok(made)
    }

    /// Creates a client certificate for a user in a group.
    ///
    /// # Errors
    /// The machine has no source of randomness.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<ClientCertificate, TlsError> {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::OrganizationName, group);
        subject.push(DnType::CommonName, user);
        let key = KeyPair::generate()?;
        let certificate = self.sign(&key, VALID_DAYS, |params| {
            params.distinguished_name = subject;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })?;
        Ok(ClientCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Returns true if a stored certificate matches its key and does not expire soon.
    fn is_usable(&self, known: &ClientCertificate) -> bool {
        let certificate = CertificateDer::from_pem_slice(known.certificate.as_bytes());
        let (Ok(certificate), Ok(key), Ok(verifier)) = (
            certificate,
            KeyPair::from_pem(&known.key),
            self.client_verifier(),
        ) else {
            return false;
        };
        let later = UnixTime::since_unix_epoch(
            UnixTime::now()
                .as_secs()
                .checked_add(RENEW_BEFORE.as_secs())
                .map_or(Duration::MAX, Duration::from_secs),
        );
        let verified = verifier.verify_client_cert(&certificate, &[], later);
        let of_key = certificate
            .windows(key.public_key_raw().len())
            .any(|part| part == key.public_key_raw());
        verified.is_ok() && of_key
    }

    /// Returns a verifier that accepts client certificates, and clients without a certificate.
    pub(crate) fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        tls::client_verifier(&self.ca_pem())
    }
}

/// Returns the user that a verified certificate names, or `None` if it has no
/// common name.
pub(crate) fn user(certificate: &[u8]) -> Option<User> {
    let mut user = User::default();
    for (kind, value) in subject(certificate).ok()? {
        match kind.as_slice() {
            COMMON_NAME => user.name = value,
            ORGANIZATION => user.groups.push(value),
            _ => {}
        }
    }
    user.groups.push(AUTHENTICATED.into());
    let digest = Sha256::digest(certificate);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    user.extra.insert(
        "authentication.kubernetes.io/credential-id".into(),
        vec![format!("X509SHA256={hex}")],
    );
    (!user.name.is_empty()).then_some(user)
}

/// Returns the attributes of a certificate's subject as pairs of identifier and
/// text.
fn subject(certificate: &[u8]) -> yasna::ASN1Result<Vec<(Vec<u8>, String)>> {
    let invalid = || yasna::ASN1Error::new(yasna::ASN1ErrorKind::Invalid);
    let outer = elements(certificate)?;
    let signed = elements(outer.first().ok_or_else(invalid)?)?;
    // The subject follows version, serial number, algorithm, issuer and
    // validity.
    let subject = signed.get(5).ok_or_else(invalid)?;
    name_attributes(subject)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    fn der(certificate: &ClientCertificate) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap()
    }

    #[test]
    fn the_subject_names_the_user() {
        let authority = Authority::ephemeral().unwrap();
        let made = authority.client("ana", "team:ü").unwrap();
        let user = user(&der(&made)).unwrap();
        assert_eq!(user.name, "ana");
        assert_eq!(user.groups, ["team:ü", AUTHENTICATED]);
        let credential = &user.extra["authentication.kubernetes.io/credential-id"];
        assert!(credential[0].starts_with("X509SHA256="), "{credential:?}");
    }

    #[test]
    fn a_certificate_of_another_authority_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::ephemeral().unwrap();
        let first = authority.administrator(dir.path()).unwrap();
        assert!(first == authority.administrator(dir.path()).unwrap());
        for file in [CERTIFICATE_FILE, KEY_FILE] {
            let metadata = std::fs::metadata(dir.path().join(file)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{file}");
        }
        let user = user(&der(&first)).unwrap();
        assert_eq!(user.name, ADMINISTRATOR);
        assert_eq!(user.groups, [MASTERS, AUTHENTICATED]);
        // A certificate signed by another authority is not accepted.
        let other = Authority::ephemeral().unwrap();
        let second = other.administrator(dir.path()).unwrap();
        assert!(first != second);
        // A damaged file, and the key of another certificate.
        for (file, text) in [(CERTIFICATE_FILE, "none"), (KEY_FILE, first.key.as_str())] {
            std::fs::write(dir.path().join(file), text).unwrap();
            let again = other.administrator(dir.path()).unwrap();
            assert!(other.is_usable(&again), "{file}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = user(&bytes);
        }
    }
}
