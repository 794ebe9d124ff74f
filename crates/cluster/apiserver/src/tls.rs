//! TLS: the cluster's own certificate authority and the server certificates that it signs. Clients
//! trust the authority through the kubeconfig.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer,
        pem::{self, PemObject as _},
    },
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

/// The names under which clients on this machine reach a server.
pub const LOCAL_NAMES: &[&str] = &[
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The reason why the authority or a certificate cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The stored key is damaged.
    #[error("{path} holds no key that can be read: delete it and ca.crt to make new ones")]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// The signing key of service account tokens is damaged.
    #[error(
        "{path} holds no signing key that can be read: delete it to make a new one; \
         tokens that were signed with the old one become invalid"
    )]
    TokenKey {
        /// The file.
        path: PathBuf,
    },
    /// The name cannot be part of a certificate.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

impl From<rcgen::Error> for TlsError {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}

/// A certificate authority. Its key stays in the directory, readable only by
/// the owner.
pub struct Authority {
    pub(crate) key: KeyPair,
    pem: String,
}

/// The TLS configuration of a server.
#[derive(Clone)]
pub struct ServerTls(pub(crate) Arc<rustls::ServerConfig>);

impl Authority {
    /// Creates an authority that exists only in memory.
    ///
    /// # Errors
    /// The machine has no source of randomness.
    pub fn ephemeral() -> Result<Self, TlsError> {
        let key = KeyPair::generate()?;
        let pem = authority_params(5 * 3650)?.self_signed(&key)?.pem();
        Ok(Self { key, pem })
    }

    /// Loads the authority from a directory (`ca.crt`, `ca.key`) or creates it
    /// there.
    ///
    /// # Errors
    /// The directory cannot be used, or the stored key is damaged.
    pub fn load_or_create(dir: &Path) -> Result<Self, TlsError> {
        let (certificate_path, key_path) = (dir.join("ca.crt"), dir.join("ca.key"));
        if certificate_path.exists() && key_path.exists() {
            let pem = read(&certificate_path)?;
            let key = KeyPair::from_pem(&read(&key_path)?)
                .map_err(|_| TlsError::Key { path: key_path })?;
            return Ok(Self { key, pem });
        }
        create_dir(dir)?;
        let authority = Self::ephemeral()?;
        write_private(&key_path, &authority.key.serialize_pem())?;
        write_private(&certificate_path, &authority.pem)?;
        Ok(authority)
    }

    /// The authority's certificate, for `certificate-authority-data`.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.pem.clone()
    }

    /// Creates a server certificate for [`LOCAL_NAMES`] and `names` (DNS names
    /// or addresses), and its configuration, which prefers HTTP/2 to HTTP/1.1.
    ///
    /// # Errors
    /// A name is not a DNS name or an address.
    pub fn server<S: AsRef<str>>(&self, names: &[S]) -> Result<ServerTls, TlsError> {
        self.server_verified_by(names, self.client_verifier()?)
    }

    /// Like [`Authority::server`], for clients whose certificates were signed by the authorities in
    /// a PEM file, and not by this authority.
    ///
    /// # Errors
    /// See [`Authority::server`]; the file cannot be read.
    pub fn server_for_clients_of<S: AsRef<str>>(
        &self,
        names: &[S],
        client_ca: &Path,
    ) -> Result<ServerTls, TlsError> {
        self.server_verified_by(names, client_verifier(&read(client_ca)?)?)
    }

    fn server_verified_by<S: AsRef<str>>(
        &self,
        names: &[S],
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<ServerTls, TlsError> {
        let mut all: Vec<String> = LOCAL_NAMES.iter().map(|&name| name.to_owned()).collect();
        for name in names {
            if !all.iter().any(|known| known == name.as_ref()) {
                all.push(name.as_ref().to_owned());
            }
        }
        let all = CertificateParams::new(all)?;
        let key = KeyPair::generate()?;
        let certificate = self.sign(&key, 3650, |params| {
            params.subject_alt_names = all.subject_alt_names;
            params.distinguished_name = common_name("longshore-apiserver");
            params.key_usages = vec![
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::KeyEncipherment,
            ];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        })?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        server_config(vec![certificate.der().clone()], key, clients)
    }

    /// Signs a certificate for `key`.
    pub(crate) fn sign(
        &self,
        key: &KeyPair,
        days: i64,
        describe: impl FnOnce(&mut CertificateParams),
    ) -> Result<Certificate, TlsError> {
        let mut params = CertificateParams::default();
        set_validity(&mut params, days);
        params.use_authority_key_identifier_extension = true;
        describe(&mut params);
        let authority = authority_params(days)?;
        Ok(params.signed_by(key, &Issuer::from_params(&authority, &self.key))?)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Loads a certificate (with its chain) and its key from PEM files. Clients may have
    /// certificates that the authorities in `client_ca` have signed; without this file, client
    /// certificates are rejected.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate or key.
    pub fn load(
        certificate: &Path,
        key: &Path,
        client_ca: Option<&Path>,
    ) -> Result<Self, TlsError> {
        let invalid = |path: &Path| {
            let path = path.display().to_string();
            move |error: pem::Error| TlsError::Certificate(format!("{path}: {error}"))
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(read(certificate)?.as_bytes()).collect();
        let chain = chain.map_err(invalid(certificate))?;
        let key_der = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes()).map_err(invalid(key))?;
        let clients = match client_ca {
            Some(path) => client_verifier(&read(path)?)?,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        server_config(chain, key_der, clients)
    }
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<ServerTls, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: rustls::Error| TlsError::Certificate(error.to_string());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(ServerTls(Arc::new(config)))
}

/// Returns a verifier that accepts certificates signed by any of these authorities, and clients
/// without a certificate.
pub(crate) fn client_verifier(
    authorities_pem: &str,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let failed = |error: &dyn std::fmt::Display| TlsError::Certificate(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities_pem.as_bytes()) {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| failed(&error))
}

/// Returns the parameters of the authority's certificate. They are constant, so that a loaded key
/// signs as the same authority.
fn authority_params(days: i64) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::new(Vec::new())?;
    set_validity(&mut params, days);
    params.distinguished_name = common_name("longshore-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Starts the validity yesterday, to tolerate differences between clocks.
fn set_validity(params: &mut CertificateParams, days: i64) {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let day = |date: jiff::civil::Date| {
        rcgen::date_time_ymd(
            i32::from(date.year()),
            date.month().unsigned_abs(),
            date.day().unsigned_abs(),
        )
    };
    params.not_before = day(today.saturating_sub(1.day()));
    params.not_after = day(today.saturating_add(days.days()));
}

/// Creates the directory of certificates and keys.
pub(crate) fn create_dir(dir: &Path) -> Result<(), TlsError> {
    fs::create_dir_all(dir).map_err(|source| TlsError::File {
        path: dir.to_owned(),
        source,
    })
}

pub(crate) fn read(path: &Path) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}

/// Atomically writes a file with mode 0600.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), TlsError> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let failed = |source| TlsError::File {
        path: path.to_owned(),
        source,
    };
    let temporary = path.with_extension("new");
    let _ = fs::remove_file(&temporary);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(failed)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    fs::rename(&temporary, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_authority_is_created_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let first = Authority::load_or_create(dir.path()).unwrap();
        let second = Authority::load_or_create(dir.path()).unwrap();
        assert_eq!(first.ca_pem(), second.ca_pem());
        for file in ["ca.crt", "ca.key"] {
            let mode = fs::metadata(dir.path().join(file))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        second.server(&["extra.example"]).unwrap();
    }

    #[test]
    fn a_damaged_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        Authority::load_or_create(dir.path()).unwrap();
        fs::write(dir.path().join("ca.key"), "no key").unwrap();
        let error = Authority::load_or_create(dir.path()).unwrap_err();
        assert!(error.to_string().contains("ca.key"), "{error}");
    }
}
