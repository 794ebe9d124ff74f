//! TLS for probes, which do not verify certificates.

use std::sync::{Arc, LazyLock};

use longshore_node_api::AnyCertificate;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The error for a server that responds without TLS.
pub(crate) const NOT_TLS: &str = "http: server gave HTTP response to HTTPS client";

/// Created on first use, because most pods have no HTTPS probes.
static CONFIG: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
});

/// Performs a handshake. Like the kubelet, accepts any certificate.
pub(super) async fn handshake(
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let config = CONFIG.as_ref().map_err(String::clone)?;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("tls: {host:?} is not a host name"))?;
    let connector = TlsConnector::from(config.clone());
    connector.connect(name, stream).await.map_err(|error| {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            // The server did not respond with TLS.
            Some(rustls::Error::InvalidMessage(_)) => NOT_TLS.to_owned(),
            Some(error) => format!("tls: {error}"),
            None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
            None => super::tcp::system_text(&error),
        }
    })
}
