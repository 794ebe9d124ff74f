//! Over the network: TLS, the token, HTTP/1.1 and HTTP/2, and a prompt shutdown.

use std::{net::SocketAddr, sync::Arc};

use crate::common::{CONFIG_MAPS, Server};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_apiserver::{
    ApiServer, Authority, AuthorizationMode, ClientCertificate, FaultRule, NoLogs, NoStreams,
    Options, TokenKey, WatchEnd,
};
use longshore_engine::Engine;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::client::TlsStream;

pub(crate) struct Running {
    pub(crate) api: ApiServer,
    pub(crate) engine: Engine,
    pub(crate) address: SocketAddr,
    ca: String,
    authority: Authority,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
}

pub(crate) async fn start() -> Running {
    let server = Server::new();
    let engine = server.engine;
    let api = ApiServer::new(Options {
        engine: engine.clone(),
        token: Some("secret".into()),
        authorization: AuthorizationMode::Rbac,
        token_key: Some(TokenKey::ephemeral().unwrap()),
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: true,
        warn_unhandled_kinds: false,
    });
    api.ensure_default_policy().await.unwrap();
    serve(api, engine).await
}

/// Serves a server on the network.
pub(crate) async fn serve(api: ApiServer, engine: Engine) -> Running {
    let authority = Authority::ephemeral().unwrap();
    let tls = authority.server::<&str>(&[]).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = api.clone();
    let serving = tokio::spawn(async move {
        served
            .serve(listener, tls, async {
                let _ = stopped.await;
            })
            .await
    });
    Running {
        api,
        engine,
        address,
        ca: authority.ca_pem(),
        authority,
        stop: Some(stop),
        serving: Some(serving),
    }
}

impl Running {
    /// Stops the server and waits until it has ended.
    pub(crate) async fn end(&mut self) {
        drop(self.stop.take());
        self.serving.take().unwrap().await.unwrap().unwrap();
    }

    /// A new connection that trusts only `ca`.
    pub(crate) async fn connect(
        &self,
        protocol: &[u8],
        name: &'static str,
    ) -> TlsStream<TcpStream> {
        self.connect_as(protocol, name, None).await.unwrap()
    }

    /// Like [`Running::connect`], with a client certificate.
    async fn connect_as(
        &self,
        protocol: &[u8],
        name: &'static str,
        client: Option<&ClientCertificate>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.ca.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            None => config.with_no_client_auth(),
            Some(client) => {
                let chain = CertificateDer::from_pem_slice(client.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes());
                config
                    .with_client_auth_cert(vec![chain.unwrap()], key.unwrap())
                    .unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from(name).unwrap();
        connector.connect(name, stream).await
    }

    /// Sends a request over a separate connection.
    pub(crate) async fn get(
        &self,
        protocol: &[u8],
        name: &'static str,
        path: &str,
        token: &str,
    ) -> Response<Incoming> {
        self.try_get(protocol, name, path, token).await.unwrap()
    }

    /// Like [`Running::get`], but the connection may fail.
    pub(crate) async fn ask(
        &self,
        protocol: &[u8],
        path: &str,
        token: &str,
    ) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
        let stream = self.connect_as(protocol, "localhost", None).await?;
        Ok(Self::request(stream, protocol, path, token).await?)
    }

    /// Sends a request with a token and further headers, and returns the code and the JSON of the
    /// response.
    pub(crate) async fn get_with(
        &self,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
    ) -> (u16, serde_json::Value) {
        let stream = self.connect(b"http/1.1", "localhost").await;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap())
    }

    /// The status of a response to a request with this `Authorization` header.
    async fn status(&self, path: &str, authorization: Option<&str>) -> u16 {
        let stream = self.connect(b"http/1.1", "localhost").await;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get(path).header("host", "localhost");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        response.status().as_u16()
    }

    /// Like [`Running::get`]; an error if the server does not respond.
    async fn try_get(
        &self,
        protocol: &[u8],
        name: &'static str,
        path: &str,
        token: &str,
    ) -> hyper::Result<Response<Incoming>> {
        let stream = self.connect(protocol, name).await;
        Self::request(stream, protocol, path, token).await
    }

    async fn request(
        stream: TlsStream<TcpStream>,
        protocol: &[u8],
        path: &str,
        token: &str,
    ) -> hyper::Result<Response<Incoming>> {
        let stream = TokioIo::new(stream);
        let request = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"));
        if protocol == b"h2" {
            let request = request.uri(format!("https://localhost{path}"));
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            sender
                .send_request(request.body(Empty::<Bytes>::new()).unwrap())
                .await
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
            tokio::spawn(connection);
            sender
                .send_request(request.body(Empty::<Bytes>::new()).unwrap())
                .await
        }
    }
}

#[tokio::test]
async fn both_protocols_and_the_token() {
    let mut running = start().await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        for name in ["localhost", "127.0.0.1", "kubernetes.default.svc"] {
            let response = running
                .get(protocol, name, "/api/v1/namespaces", "secret")
                .await;
            assert_eq!(response.status(), 200);
            let length: usize = response.headers()["content-length"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(
                response
                    .into_body()
                    .collect()
                    .await
                    .unwrap()
                    .to_bytes()
                    .len(),
                length
            );
        }
        let refused = running
            .get(protocol, "localhost", "/api/v1/namespaces", "wrong")
            .await;
        assert_eq!(refused.status(), 401);
    }
    running.end().await;
}

/// As on Kubernetes, an invalid token is also refused on open paths, and a request with a header of
/// another scheme counts as a request without credentials.
#[tokio::test]
async fn invalid_tokens_are_refused_on_each_path() {
    let mut running = start().await;
    for path in [
        "/version",
        "/healthz",
        "/livez",
        "/readyz",
        "/healthz/ping",
        "/api",
    ] {
        for invalid in ["Bearer wrong", "bearer  wrong"] {
            assert_eq!(running.status(path, Some(invalid)).await, 401, "{path}");
        }
    }
    let none = [
        None,
        Some("Basic YTpi"),
        Some("Bearer"),
        Some("Bearer "),
        Some("wrong"),
    ];
    for none in none {
        assert_eq!(running.status("/version", none).await, 200, "{none:?}");
        assert_eq!(running.status("/api", none).await, 403, "{none:?}");
    }
    running.end().await;
}

#[tokio::test]
async fn stopping_ends_watches_cleanly() {
    let mut running = start().await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut watches = Vec::new();
    for protocol in [&b"h2"[..], b"http/1.1"] {
        // The head arrives at once, before there is any event.
        let response = running.get(protocol, "localhost", &path, "secret").await;
        assert_eq!(response.status(), 200);
        watches.push(response.into_body());
    }
    drop(running.stop.take());
    for watch in watches {
        assert!(watch.collect().await.unwrap().to_bytes().is_empty());
    }
    running.end().await;
}

#[tokio::test]
async fn only_loopback_addresses_are_served() {
    let api = Server::new().api;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let tls = Authority::ephemeral().unwrap().server::<&str>(&[]).unwrap();
    let refused = api
        .serve(listener, tls, std::future::pending())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("loopback"), "{refused}");
}

#[tokio::test]
async fn a_fault_drops_connections_and_breaks_watches() {
    let mut running = start().await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let rule = FaultRule::drop_connection().times(1);
        running.api.faults().add(rule).unwrap();
        let path = "/api/v1/namespaces";
        let lost = running.try_get(protocol, "localhost", path, "secret").await;
        assert!(lost.is_err(), "{lost:?}");
        let back = running.get(protocol, "localhost", path, "secret").await;
        assert_eq!(back.status(), 200);

        let rule = FaultRule::watches(WatchEnd::Break).times(1);
        running.api.faults().add(rule).unwrap();
        let path = format!("{path}?watch=true");
        let watch = running.try_get(protocol, "localhost", &path, "secret");
        let broken = match watch.await {
            Ok(watch) => watch.into_body().collect().await.err(),
            Err(error) => Some(error),
        };
        assert!(broken.is_some());
    }
    running.end().await;
}

/// The user that the server sees for a connection, or the error code.
async fn name_of(
    stream: TlsStream<TcpStream>,
    token: Option<&str>,
) -> Result<serde_json::Value, u16> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("host", "localhost")
        .header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = http_body_util::Full::new(Bytes::from("{}"));
    let answer = sender.send_request(request.body(body).unwrap()).await;
    let answer = answer.unwrap();
    if answer.status() != 201 {
        return Err(answer.status().as_u16());
    }
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let review: serde_json::Value = serde_json::from_slice(&body).unwrap();
    Ok(review["status"]["userInfo"].clone())
}

#[tokio::test]
async fn a_client_certificate_is_enough_and_one_of_another_ca_is_rejected() {
    let mut running = start().await;
    let dir = tempfile::tempdir().unwrap();
    let own = running.authority.administrator(dir.path()).unwrap();
    let connect = || running.connect_as(b"http/1.1", "localhost", Some(&own));
    let user = name_of(connect().await.unwrap(), None).await.unwrap();
    assert_eq!(user["username"], "longshore-admin");
    let groups = serde_json::json!(["system:masters", "system:authenticated"]);
    assert_eq!(user["groups"], groups);
    // A token takes precedence over the certificate.
    let refused = name_of(connect().await.unwrap(), Some("wrong")).await;
    assert_eq!(refused, Err(401));
    let user = name_of(connect().await.unwrap(), Some("secret")).await;
    assert_eq!(user.unwrap()["username"], "longshore-admin");
    let bare = running.connect(b"http/1.1", "localhost").await;
    // Requests without credentials belong to system:anonymous.
    assert_eq!(name_of(bare, None).await, Err(403));

    let dir = tempfile::tempdir().unwrap();
    let foreign = Authority::ephemeral().unwrap();
    let foreign = foreign.administrator(dir.path()).unwrap();
    let stream = running.connect_as(b"http/1.1", "localhost", Some(&foreign));
    // With TLS 1.3, the client learns of the rejection when it reads.
    if let Ok(mut stream) = stream.await {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let _ = stream
            .write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).await;
        assert!(ended.is_err() && answer.is_empty(), "{ended:?} {answer:?}");
    }
    running.end().await;
}
