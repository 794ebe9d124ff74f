//! The certificates of other servers that are trusted, and the certificate that this server
//! presents.

use std::sync::Arc;

use longshore_node_api::AnyCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    server::ParsedCertificate,
};

/// A client certificate with its chain and its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Creates the TLS configuration that accepts every certificate.
///
/// # Errors
/// The identity is not valid.
pub(crate) fn any(identity: Option<&Identity>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(AnyCertificate::new(provider.clone()));
    with_verifier(provider, verifier, identity)
}

fn with_verifier(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<&Identity>,
) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Creates the TLS configuration that trusts the certificates of a bundle, or the system's
/// certificates if the bundle is empty.
pub(crate) fn config(
    bundle: &[u8],
    identity: Option<&Identity>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted = match bundle {
        [] => system_certificates(),
        bundle => CertificateDer::pem_slice_iter(bundle).flatten().collect(),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    if roots.is_empty() {
        return Err(
            "unable to load root certificates: the caBundle contains no certificate".into(),
        );
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| error.to_string())?;
    with_verifier(provider, Arc::new(Verifier { webpki, trusted }), identity)
}

/// Verifies certificates with webpki, and also accepts a certificate that is itself in the bundle,
/// like Go. The webhooks of envtest have such certificates.
#[derive(Debug)]
struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self
            .webpki
            .verify_server_cert(certificate, intermediates, name, ocsp, now);
        // Both errors are found after the validity was checked: the certificate signs itself, or
        // its authority is not in the bundle.
        let has_no_authority = match &verified {
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => true,
            Err(Error::InvalidCertificate(CertificateError::Other(other))) => {
                other.to_string().contains("CaUsedAsEndEntity")
            }
            _ => false,
        };
        if has_no_authority && self.trusted.iter().any(|trusted| trusted == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// The certificates that the system trusts, from the files of common distributions.
fn system_certificates() -> Vec<CertificateDer<'static>> {
    const FILES: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let read = |file: &str| {
        let certificates = CertificateDer::pem_file_iter(file).ok()?;
        let certificates: Vec<_> = certificates.flatten().collect();
        (!certificates.is_empty()).then_some(certificates)
    };
    FILES.into_iter().find_map(read).unwrap_or_default()
}

/// The problem of a TLS handshake, in the words of Go.
pub(crate) fn problem(error: &std::io::Error) -> String {
    let source = error.get_ref().and_then(|error| error.downcast_ref());
    let Some(Error::InvalidCertificate(problem)) = source else {
        return match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "EOF".into(),
            std::io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
            _ => error.to_string(),
        };
    };
    let problem = match problem {
        // The authority has the name of a trusted authority, but another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("certificate has expired or is not yet valid: {problem}")
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<&str> = presented.iter().map(|name| plain(name)).collect();
            let expected = expected.to_str();
            match names.as_slice() {
                [] => format!(
                    "certificate is not valid for any names, but wanted to match {expected}"
                ),
                names => format!(
                    "certificate is valid for {}, not {expected}",
                    names.join(", ")
                ),
            }
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {problem}")
}

/// A name of a certificate without the type that rustls shows.
fn plain(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(_, rest)| rest);
    name.trim_end_matches(')').trim_matches('"')
}
