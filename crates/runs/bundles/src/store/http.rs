//! The HTTP clients for signed URLs.

use std::{sync::Once, time::Duration};

/// The connection timeout.
const CONNECT: Duration = Duration::from_secs(10);
/// The read timeout.
const SILENCE: Duration = Duration::from_secs(60);

/// Selects ring for TLS, unless the process has already selected a provider.
pub(super) fn choose_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A client that trusts the machine's certificates, or the certificates that browsers trust if the
/// machine has none, as in slim images.
pub(crate) fn client() -> Result<reqwest::Client, reqwest::Error> {
    choose_tls();
    builder().build().or_else(|_| {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .filter_map(|root| reqwest::Certificate::from_der(root).ok());
        builder().tls_certs_only(roots).build()
    })
}

/// Like [`client`], but for requests with a long body: without the read timeout, which would begin
/// with the request.
pub(super) fn upload_client() -> Result<reqwest::Client, reqwest::Error> {
    choose_tls();
    let plain = || bare().connect_timeout(CONNECT);
    plain().build().or_else(|_| {
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .filter_map(|root| reqwest::Certificate::from_der(root).ok());
        plain().tls_certs_only(roots).build()
    })
}

fn builder() -> reqwest::ClientBuilder {
    bare().connect_timeout(CONNECT).read_timeout(SILENCE)
}

fn bare() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("longshore/", env!("CARGO_PKG_VERSION")))
        // A signed URL is valid for one host.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        io::{Read, Write},
        sync::Arc,
    };

    use super::*;

    #[tokio::test]
    async fn tls_works_and_unknown_certificates_are_rejected() {
        choose_tls();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let root = reqwest::Certificate::from_der(made.cert.der()).unwrap();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            for socket in listener.incoming().take(2) {
                let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(session, socket.unwrap());
                let mut request = [0; 1024];
                // This fails for a client that does not trust the certificate.
                if stream.read(&mut request).is_ok() {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
                    stream.write_all(answer).unwrap();
                }
            }
        };
        let server = std::thread::spawn(serve);
        let url = format!("https://localhost:{port}/");
        let error = client().unwrap().get(&url).send().await.unwrap_err();
        let problem = super::super::reason::innermost(&error);
        assert!(problem.contains("certificate"), "{problem}");
        let trusting = builder().tls_certs_only([root]).build().unwrap();
        let answer = trusting.get(&url).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "hi");
        server.join().unwrap();
    }
}
