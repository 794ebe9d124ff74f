//! The connection to a pod's port.

use std::sync::Arc;

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{
    DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio_rustls::TlsConnector;

use super::pods::Destination;
use crate::{call::Call, input::RequestBody};

/// Sends a request over a connection of its own. The error is the problem.
pub(super) async fn send(
    call: &Call,
    destination: &Destination,
    is_tls: bool,
    request: Request<RequestBody>,
) -> Result<Response<Incoming>, String> {
    let streams = &call.shared.node_streams;
    let opening = streams.connect(destination.pod.clone(), destination.port);
    let connection = opening.await.map_err(|error| error.to_string())?;
    if !is_tls {
        return exchange(TokioIo::new(connection), request).await;
    }
    let config = tls_config().map_err(|error| error.to_string())?;
    let name = destination.authority();
    let name = name.split(':').next().unwrap_or_default().to_owned();
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let connection = connector.connect(name, connection).await;
    let connection = connection.map_err(|error| error.to_string())?;
    exchange(TokioIo::new(connection), request).await
}

async fn exchange<T>(io: T, request: Request<RequestBody>) -> Result<Response<Incoming>, String>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(io)
        .await
        .map_err(|error| error.to_string())?;
    // The connection ends with the response's body, or when the client drops it.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a proxied connection ended");
        }
    });
    let response = sender.send_request(request).await;
    response.map_err(|error| error.to_string())
}

fn tls_config() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(AnyCertificate(provider.clone()));
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

/// Accepts every certificate, as Kubernetes does here: pods have no certificates
/// that the API server could verify, and no credentials are sent to them.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let supported = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, supported)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let supported = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, supported)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
