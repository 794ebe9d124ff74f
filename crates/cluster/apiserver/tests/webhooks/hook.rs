//! A webhook server for tests: HTTPS with a certificate of a separate authority. It records its
//! requests and answers by path.

#![allow(dead_code, unreachable_pub)]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A request that the server has received.
#[derive(Debug, Clone)]
pub struct Call {
    /// The path with the query.
    pub path: String,
    /// `request` of the review.
    pub request: Value,
}

type Answers =
    BTreeMap<String, Arc<dyn Fn(Value) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync>>;

/// A running server, which ends with the runtime of its test.
pub struct Hook {
    pub address: SocketAddr,
    /// The `caBundle` with the server's authority.
    pub bundle: String,
    calls: Arc<Mutex<Vec<Call>>>,
    answers: Arc<Mutex<Answers>>,
}

/// The certificate of an authority, and a server certificate that it signed.
fn certificates(names: &[&str]) -> (String, TlsAcceptor) {
    let (authority, _, acceptor) = signed(names);
    (authority, acceptor)
}

/// A server certificate that an authority signed, which is not in the bundle.
fn lone_certificate() -> (String, TlsAcceptor) {
    let (_, own, acceptor) = signed(&["127.0.0.1"]);
    (own, acceptor)
}

/// The certificates of an authority and of a server, and the server.
fn signed(names: &[&str]) -> (String, String, TlsAcceptor) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &Issuer::from_params(&authority, &authority_key))
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let acceptor = acceptor(certificate.der().clone(), key);
    (authority_pem, certificate.pem(), acceptor)
}

fn acceptor(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A self-signed certificate.
fn own_certificate() -> (String, TlsAcceptor) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    (certificate.pem(), acceptor(certificate.der().clone(), der))
}

impl Hook {
    pub async fn start() -> Self {
        Self::with(certificates(&["127.0.0.1", "hook.default.svc"])).await
    }

    /// A server with a self-signed certificate as `caBundle`.
    pub async fn with_own_certificate() -> Self {
        Self::with(own_certificate()).await
    }

    /// A server with its certificate as `caBundle`, without its authority.
    pub async fn with_lone_certificate() -> Self {
        Self::with(lone_certificate()).await
    }

    async fn with((pem, acceptor): (String, TlsAcceptor)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hook = Self {
            address: listener.local_addr().unwrap(),
            bundle: STANDARD.encode(pem),
            calls: Arc::default(),
            answers: Arc::default(),
        };
        let (calls, answers) = (hook.calls.clone(), hook.answers.clone());
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (acceptor, calls, answers) = (acceptor.clone(), calls.clone(), answers.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request: Request<Incoming>| {
                        respond(request, calls.clone(), answers.clone())
                    });
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        hook
    }

    /// Answers reviews at a path with a `response`, to which the uid is added.
    pub fn on(&self, path: &str, answer: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        self.on_async(path, move |request| {
            let answer = answer(&request);
            Box::pin(async move { review(&request, answer) })
        });
    }

    /// Answers requests at a path with any response.
    pub fn on_async(
        &self,
        path: &str,
        answer: impl Fn(Value) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync + 'static,
    ) {
        self.answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), Arc::new(answer));
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The paths of the calls without their queries.
    pub fn paths(&self) -> Vec<String> {
        let calls = self.calls();
        let path = |call: &Call| call.path.split('?').next().unwrap().to_owned();
        calls.iter().map(path).collect()
    }

    /// Removes the recorded calls.
    pub fn clear(&self) {
        self.calls.lock().unwrap().clear();
    }

    pub fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// A webhook that is called at a path for an operation on a resource of the core group.
    pub fn webhook(&self, path: &str, operations: &[&str], resources: &[&str]) -> Value {
        json!({
            "name": format!("{}.example.com", path.trim_start_matches('/')),
            "clientConfig": self.client_config(path),
            "rules": [{
                "operations": operations, "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": resources,
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    }
}

/// The response that contains a review.
pub fn review(request: &Value, mut response: Value) -> Response<Full<Bytes>> {
    response["uid"] = request["uid"].clone();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    Response::new(Full::new(review.to_string().into()))
}

/// A `response` that allows the request and patches its object.
pub fn patch(operations: &Value) -> Value {
    let patch = STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"})
}

async fn respond(
    request: Request<Incoming>,
    calls: Arc<Mutex<Vec<Call>>>,
    answers: Arc<Mutex<Answers>>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let uri = request.uri().clone();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let request = review["request"].clone();
    calls.lock().unwrap().push(Call {
        path: uri.to_string(),
        request: request.clone(),
    });
    let answer = answers.lock().unwrap().get(uri.path()).cloned();
    Ok(match answer {
        Some(answer) => answer(request).await,
        None => self::review(&request, json!({"allowed": true})),
    })
}
