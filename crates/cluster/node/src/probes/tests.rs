//! Probes against servers of the tests.
#![allow(clippy::unwrap_used)]

use std::{convert::Infallible, net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{Container, Probe};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Action, Outcome, ProbeError, grpc, http, resolve_action, tcp};

/// A timeout that a probe must not reach.
const LONG: Duration = Duration::from_secs(60);

fn request(port: u16, fields: Value) -> http::HttpGet {
    let mut get = json!({"port": port, "host": "127.0.0.1", "path": "/"});
    for (name, value) in fields.as_object().unwrap() {
        get[name] = value.clone();
    }
    let probe: Probe = serde_json::from_value(json!({"httpGet": get})).unwrap();
    match resolve_action(&probe, &Container::default(), Ipv4Addr::LOCALHOST) {
        Action::Http(request) => request,
        other => panic!("{other:?}"),
    }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Returns a port on which nothing listens.
async fn free_port() -> u16 {
    listen().await.1
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| {
        let value = request.headers().get(name);
        value
            .map_or("-", |value| value.to_str().unwrap())
            .to_owned()
    };
    let redirect = |to: &str| Response::builder().status(302).header("location", to);
    let text = |text: String| Full::new(Bytes::from(text));
    let response = match request.uri().path() {
        "/ok" => Response::builder().body(text(String::new())),
        "/bad" => Response::builder().status(503).body(text("secret".into())),
        "/here" => redirect("/ok").body(text(String::new())),
        "/loop" => redirect("/loop").body(text(String::new())),
        "/away" => redirect("http://example.invalid/").body(text("moved".into())),
        // A redirect without a location shows the request in a warning.
        "/echo" => Response::builder().status(300).body(text(format!(
            "{} {} {} {}",
            request.uri(),
            header("host"),
            header("user-agent"),
            header("x-a")
        ))),
        _ => Response::builder().status(404).body(text(String::new())),
    };
    Ok(response.unwrap())
}

async fn serve_http() -> u16 {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(respond)),
            );
        }
    });
    port
}

async fn probe(port: u16, fields: Value) -> Result<Outcome, ProbeError> {
    http::probe(&request(port, fields), LONG).await
}

#[tokio::test]
async fn responses_of_http_probes() {
    let port = serve_http().await;
    let at = |path: &str| probe(port, json!({"path": path}));
    assert_eq!(at("/ok").await, Ok(Outcome::Success));
    assert_eq!(at("/here").await, Ok(Outcome::Success));
    let failure = |text: String| Ok(Outcome::Failure(text));
    let text = "HTTP probe failed with statuscode: 503".to_owned();
    assert_eq!(at("/bad").await, failure(text));
    let text = format!("Get \"http://127.0.0.1:{port}/loop\": stopped after 10 redirects");
    assert_eq!(at("/loop").await, failure(text));
    let text = "Probe terminated redirects, Response body: moved".to_owned();
    assert_eq!(at("/away").await, Ok(Outcome::Warning(text)));
    let header = |name: &str, value: &str| json!({"name": name, "value": value});
    let headers = json!([header("Host", "web.example"), header("X-A", "b")]);
    let echo = probe(port, json!({"path": "echo?q=a b", "httpHeaders": headers}));
    let text = "Probe terminated redirects, Response body: /echo?q=a%20b web.example \
                kube-probe/1.37 b";
    assert_eq!(echo.await, Ok(Outcome::Warning(text.to_owned())));
}

#[tokio::test]
async fn http_probes_without_a_response() {
    let port = free_port().await;
    let text = format!(
        "Get \"http://127.0.0.1:{port}/\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(probe(port, json!({})).await, Ok(Outcome::Failure(text)));

    // The first server accepts and does not respond, the second one closes the connection.
    let (listener, port) = listen().await;
    let silent = http::probe(&request(port, json!({})), Duration::from_millis(20)).await;
    let text = format!(
        "Get \"http://127.0.0.1:{port}/\": context deadline exceeded (Client.Timeout exceeded \
         while awaiting headers)"
    );
    assert_eq!(silent, Ok(Outcome::Failure(text)));
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    let Ok(Outcome::Failure(text)) = probe(port, json!({})).await else {
        panic!("no failure")
    };
    assert!(
        text.ends_with(": EOF") || text.ends_with("connection reset by peer"),
        "{text}"
    );

    let text = "Get \"http://nosuch.invalid:80/\": dial tcp: lookup nosuch.invalid: no such host";
    let lookup = probe(80, json!({"host": "nosuch.invalid"})).await;
    assert_eq!(lookup, Ok(Outcome::Failure(text.to_owned())));
}

#[tokio::test]
async fn https_probes_accept_any_certificate() {
    let key = rcgen::generate_simple_self_signed(["other.example".to_owned()]).unwrap();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private.unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = acceptor.accept(stream).await.unwrap();
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(respond))
            .await;
    });
    let https = json!({"path": "/ok", "scheme": "HTTPS"});
    assert_eq!(probe(port, https.clone()).await, Ok(Outcome::Success));

    let port = serve_http().await;
    let text = format!(
        "Get \"https://127.0.0.1:{port}/ok\": http: server gave HTTP response to HTTPS client"
    );
    assert_eq!(probe(port, https).await, Ok(Outcome::Failure(text)));
}

#[tokio::test]
async fn tcp_probes() {
    let (_listener, port) = listen().await;
    assert_eq!(tcp::probe("127.0.0.1", port, LONG).await, Outcome::Success);
    let port = free_port().await;
    let text = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    let refused = tcp::probe("127.0.0.1", port, LONG).await;
    assert_eq!(refused, Outcome::Failure(text));
}

/// A health service: the name of the service is the hexadecimal response.
async fn health(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    use http_body_util::BodyExt as _;
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let name = body.get(7..).unwrap_or_default();
    let builder = Response::builder().header("content-type", "application/grpc");
    let response = match name {
        b"missing" => builder
            .header("grpc-status", "5")
            .header("grpc-message", "unknown%20service"),
        b"unimplemented" => builder
            .header("grpc-status", "12")
            .header("grpc-message", "no"),
        _ => builder.header("grpc-status", "0"),
    };
    let state = match name {
        b"" => 1,
        b"down" => 2,
        _ => 3,
    };
    let message = Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 0x08, state]);
    Ok(response.body(Full::new(message)).unwrap())
}

#[tokio::test]
async fn grpc_probes() {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(
                hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service_fn(health)),
            );
        }
    });
    let probe = |service| grpc::probe("127.0.0.1", port, service, LONG);
    let failure = |text: &str| Outcome::Failure(text.to_owned());
    assert_eq!(probe("").await, Outcome::Success);
    let down = failure("service unhealthy (responded with \"NOT_SERVING\")");
    assert_eq!(probe("down").await, down);
    let missing =
        "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service";
    assert_eq!(probe("missing").await, failure(missing));
    let text = "error: this server does not implement the grpc health protocol \
                (grpc.health.v1.Health): no";
    assert_eq!(probe("unimplemented").await, failure(text));

    let port = free_port().await;
    let refused = grpc::probe("127.0.0.1", port, "", Duration::from_secs(1)).await;
    let text = format!(
        "timeout: failed to connect service \"127.0.0.1:{port}\" within 1s: context deadline \
         exceeded"
    );
    assert_eq!(refused, Outcome::Failure(text));
}
