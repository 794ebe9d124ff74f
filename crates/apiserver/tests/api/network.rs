//! Over the network: TLS, the token, both versions of HTTP, a prompt end.

use std::{net::SocketAddr, sync::Arc};

use crate::common::{CONFIG_MAPS, Server};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longshore_apiserver::{ApiServer, Authority, FaultRule, NoLogs, NoStreams, Options, WatchEnd};
use longshore_engine::Engine;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_rustls::client::TlsStream;

pub(crate) struct Running {
    pub(crate) api: ApiServer,
    pub(crate) engine: Engine,
    address: SocketAddr,
    ca: String,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<std::io::Result<()>>>,
}

pub(crate) async fn start() -> Running {
    let server = Server::new();
    let engine = server.engine;
    let api = ApiServer::new(Options {
        engine: engine.clone(),
        token: Some("secret".into()),
        node_logs: Arc::new(NoLogs),
        node_streams: Arc::new(NoStreams),
        faults: true,
    });
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

    /// A connection of one's own, which trusts only `ca`.
    pub(crate) async fn connect(
        &self,
        protocol: &[u8],
        name: &'static str,
    ) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.ca.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from(name).unwrap();
        connector.connect(name, stream).await.unwrap()
    }

    /// One request over a connection of its own.
    pub(crate) async fn get(
        &self,
        protocol: &[u8],
        name: &'static str,
        path: &str,
        token: &str,
    ) -> Response<Incoming> {
        self.try_get(protocol, name, path, token).await.unwrap()
    }

    /// As [`Running::get`]; an error when no answer comes.
    async fn try_get(
        &self,
        protocol: &[u8],
        name: &'static str,
        path: &str,
        token: &str,
    ) -> hyper::Result<Response<Incoming>> {
        let stream = TokioIo::new(self.connect(protocol, name).await);
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
        let open = running.get(protocol, "localhost", "/livez", "wrong").await;
        assert_eq!(open.status(), 200);
    }
    running.end().await;
}

#[tokio::test]
async fn stopping_ends_watches_cleanly() {
    let mut running = start().await;
    let path = format!("{CONFIG_MAPS}?watch=true");
    let mut watches = Vec::new();
    for protocol in [&b"h2"[..], b"http/1.1"] {
        // The head comes at once, before there is any event.
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
async fn only_loopback_is_served() {
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
