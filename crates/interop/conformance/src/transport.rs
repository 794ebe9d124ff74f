//! An HTTP/2 connection over TLS, as Kubernetes clients use it. The server certificate is not
//! verified because all servers are on the loopback interface.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_node_api::AnyCertificate;
use rustls::{ClientConfig, crypto::ring, pki_types::ServerName};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use crate::RESPONSE_TIMEOUT;

/// The connection of a test; requests share it.
#[derive(Clone)]
pub(crate) struct Transport {
    sender: SendRequest<Full<Bytes>>,
}

impl Transport {
    /// Connects to `127.0.0.1:6443`.
    #[allow(clippy::expect_used, reason = "tests stop here")]
    pub(crate) async fn connect(authority: &str) -> Self {
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring supports the protocol versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate::new(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(authority)
            .await
            .unwrap_or_else(|error| panic!("cannot connect to {authority}: {error}"));
        let name = ServerName::try_from("localhost").expect("a valid server name");
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .expect("the TLS handshake succeeds");
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("the HTTP/2 handshake succeeds");
        // The task ends when the last sender is dropped.
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends one request and returns the head of the response.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let description = format!("{} {}", request.method(), request.uri().path());
        let response = timeout(RESPONSE_TIMEOUT, self.sender.clone().send_request(request)).await;
        response
            .unwrap_or_else(|_| panic!("{description}: no response"))
            .unwrap_or_else(|error| panic!("{description}: {error}"))
    }
}
