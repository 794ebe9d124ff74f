//! An aggregated API server for tests: HTTPS with a certificate of a separate authority. It
//! requires a client certificate of the proxy, and records the requests that it receives.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use longshore_apiserver::ApiServer;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

/// A request that the server has received.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A running server, which ends with the runtime of its test.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    /// The `caBundle` with the server's authority.
    pub(crate) bundle: String,
    calls: Arc<Mutex<Vec<Call>>>,
    answers: Arc<Answers>,
    /// The server that receives the requests for paths that end with `/again`.
    again: Arc<OnceLock<ApiServer>>,
}

type Answers = Mutex<BTreeMap<String, (u16, String)>>;

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

impl Backend {
    /// Starts a server that accepts clients with certificates of an authority.
    pub(crate) async fn start(client_authority: &str) -> Self {
        let listener = TcpListener::bind("127.64.0.9:0").await.unwrap();
        let (bundle, acceptor) = acceptor(client_authority);
        let backend = Self {
            address: listener.local_addr().unwrap(),
            bundle: STANDARD.encode(bundle),
            calls: Arc::default(),
            answers: Arc::default(),
            again: Arc::default(),
        };
        backend.answer("/apis/fish.example.com/v1", 200, &resources());
        backend.answer(
            "/openapi/v3",
            200,
            &json!({"paths": {"apis/fish.example.com/v1": {
            "serverRelativeURL": "/openapi/v3/apis/fish.example.com/v1?hash=1"}}}),
        );
        backend.answer(
            "/openapi/v3/apis/fish.example.com/v1",
            200,
            &json!({"openapi": "3.0.0"}),
        );
        let (calls, answers) = (backend.calls.clone(), backend.answers.clone());
        let again = backend.again.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, calls, answers) = (acceptor.clone(), calls.clone(), answers.clone());
                let again = again.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request: Request<Incoming>| {
                        respond(request, (calls.clone(), answers.clone()), again.clone())
                    });
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .with_upgrades()
                        .await;
                });
            }
        });
        backend
    }

    /// Answers requests at a path with a document.
    pub(crate) fn answer(&self, path: &str, code: u16, document: &Value) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(path.to_owned(), (code, document.to_string()));
    }

    /// Sends the requests at paths that end with `/again` to a server.
    pub(crate) fn send_back_to(&self, server: &ApiServer) {
        let _ = self.again.set(server.clone());
    }

    /// The requests at a path.
    pub(crate) fn calls(&self, path: &str) -> Vec<Call> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = |call: &&Call| call.target.split('?').next() == Some(path);
        calls.iter().filter(of_path).cloned().collect()
    }
}

fn resources() -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "fish.example.com/v1",
    "resources": [
        {"name": "fish", "singularName": "fish", "namespaced": true, "kind": "Fish",
         "verbs": ["get", "list"], "shortNames": ["fi"]},
        {"name": "fish/status", "singularName": "", "namespaced": true, "kind": "Fish",
         "verbs": ["get"]},
    ]})
}

fn acceptor(client_authority: &str) -> (String, TlsAcceptor) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let bundle = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["backend.default.svc".to_owned()])
        .unwrap()
        .signed_by(&key, &Issuer::from_params(&authority, &authority_key))
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    let client = CertificateDer::from_pem_slice(client_authority.as_bytes()).unwrap();
    roots.add(client).unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.unwrap())
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (bundle, TlsAcceptor::from(Arc::new(config)))
}

async fn respond(
    mut request: Request<Incoming>,
    (calls, answers): (Arc<Mutex<Vec<Call>>>, Arc<Answers>),
    again: Arc<OnceLock<ApiServer>>,
) -> Result<Response<StreamBody<Frames>>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let upgrade = request.headers().get("upgrade").cloned();
    let is_upgrade = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let body = match is_upgrade {
        Some(_) => Bytes::new(),
        None => body
            .collect()
            .await
            .map(|body| body.to_bytes())
            .unwrap_or_default(),
    };
    calls
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Call {
            method: parts.method.to_string(),
            target: parts.uri.to_string(),
            headers: parts.headers,
            body,
        });
    if let (Some(upgraded), Some(protocol)) = (is_upgrade, upgrade) {
        tokio::spawn(echo(upgraded));
        let response = Response::builder()
            .status(101)
            .header("connection", "Upgrade")
            .header("upgrade", protocol)
            .body(frames(Vec::new(), false));
        return Ok(response.unwrap());
    }
    if let (true, Some(server)) = (path.ends_with("/again"), again.get()) {
        let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let response = Response::builder().status(code);
        return Ok(response.body(frames(vec![body], false)).unwrap());
    }
    let known = answers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&path)
        .cloned();
    let (code, text, is_open) = match known {
        Some((code, text)) => (code, text, false),
        None if path.ends_with("/never") => std::future::pending().await,
        None if path.ends_with("/elsewhere") => (302, String::new(), false),
        None if query.contains("watch=true") => (200, "{\"type\":\"ADDED\"}\n".to_owned(), true),
        None if path.starts_with("/apis/fish.example.com/v1/") => (
            200,
            json!({"kind": "Fish", "path": path}).to_string(),
            false,
        ),
        None => (404, "404 page not found\n".to_owned(), false),
    };
    let mut response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    if code == 302 {
        response = response.header("location", "/apis");
    }
    Ok(response.body(frames(vec![text.into()], is_open)).unwrap())
}

/// A body of chunks, which does not end if it is open.
fn frames(chunks: Vec<Bytes>, is_open: bool) -> StreamBody<Frames> {
    let chunks = futures::stream::iter(chunks.into_iter().map(|chunk| Ok(Frame::data(chunk))));
    StreamBody::new(match is_open {
        true => chunks.chain(futures::stream::pending()).boxed(),
        false => chunks.boxed(),
    })
}

/// Sends received data back in capital letters.
async fn echo(upgraded: hyper::upgrade::OnUpgrade) {
    let Ok(upgraded) = upgraded.await else {
        return;
    };
    let mut io = TokioIo::new(upgraded);
    let mut buffer = [0; 64];
    while let Ok(read @ 1..) = io.read(&mut buffer).await {
        buffer[..read].make_ascii_uppercase();
        if io.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
