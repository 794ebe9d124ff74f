//! A TLS server that records the credentials in requests.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

/// The recorded parts of a request: its path, and its headers about the user.
pub(crate) type Seen = (String, Vec<String>);

pub(crate) struct Recorder {
    pub(crate) port: u16,
    /// The certificate of the authority, as PEM.
    pub(crate) authority: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    /// Starts a server with a certificate for 127.0.0.1 and `example.invalid`.
    pub(crate) async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let names = vec!["example.invalid".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        let address = SanType::IpAddress("127.0.0.1".parse().unwrap());
        params.subject_alt_names.push(address);
        let key = KeyPair::generate().unwrap();
        let own = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let recorder = Self {
            port: listener.local_addr().unwrap().port(),
            authority: authority.pem(),
            seen: Arc::default(),
        };
        let (acceptor, seen) = (
            TlsAcceptor::from(Arc::new(config)),
            Arc::clone(&recorder.seen),
        );
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    seen.lock()
                        .unwrap()
                        .push(read(&String::from_utf8_lossy(&head)));
                    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        recorder
    }

    /// The request to this path, below the path of the server, since the last call. Some kubectls
    /// first ask for the version.
    pub(crate) fn take(&self, path: &str) -> Option<Seen> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().find(|(found, _)| found.ends_with(path))
    }
}

/// The path and the headers about the user of a request.
fn read(head: &str) -> Seen {
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value));
    let own =
        headers.filter(|(name, _)| name == "authorization" || name.starts_with("impersonate-"));
    let mut own: Vec<String> = own
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    own.sort();
    (path, own)
}

/// Writes a file with these permissions.
pub(crate) fn write(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
