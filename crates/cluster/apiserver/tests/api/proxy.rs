//! `pods/proxy` and `services/proxy`.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use longshore_apiserver::{ApiServer, limits};
use longshore_node_api::{
    BoxedConnection, ContainerRef, NodeStreams, Opening, Session, SessionError, StreamsWanted,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::common::{PODS, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
/// No server listens on this port.
const CLOSED: u16 = 9;

/// Pods that describe the requests that they get.
struct Describe;

/// Pods that send each request back to the server.
#[derive(Default)]
struct SendBack(Arc<OnceLock<ApiServer>>);

impl NodeStreams for Describe {
    fn check(&self, _: &ContainerRef) -> Result<(), SessionError> {
        Ok(())
    }

    fn exec(&self, _: ContainerRef, _: Vec<String>, _: StreamsWanted) -> Opening<Session> {
        Box::pin(async { Err(SessionError::Failed("no commands".into())) })
    }

    fn attach(&self, container: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        self.exec(container, Vec::new(), wanted)
    }

    fn connect(&self, pod: ContainerRef, port: u16) -> Opening<BoxedConnection> {
        if port == CLOSED {
            return Box::pin(async { Err(SessionError::Failed("connection refused".into())) });
        }
        let (near, far) = tokio::io::duplex(4096);
        let service = service_fn(move |request| describe(pod.pod.clone(), port, request));
        tokio::spawn(async move {
            let server = hyper::server::conn::http1::Builder::new();
            server.serve_connection(TokioIo::new(far), service).await
        });
        Box::pin(async { Ok(Box::pin(near) as BoxedConnection) })
    }
}

async fn describe(
    pod: String,
    port: u16,
    request: Request<Incoming>,
) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
    let headers: Vec<String> = request.headers().keys().map(ToString::to_string).collect();
    let mut described = json!({
        "pod": pod, "port": port, "method": request.method().as_str(),
        "uri": request.uri().to_string(), "headers": headers,
        "host": request.headers()["host"].to_str().unwrap(),
        "forwarded": request.headers()["x-forwarded-uri"].to_str().unwrap(),
    });
    let moved = request.uri().path() == "/moved";
    let page = request.uri().path() == "/page";
    let body = request.into_body().collect().await.unwrap().to_bytes();
    described["body"] = String::from_utf8_lossy(&body).into();
    let mut response = Response::new(Full::from(described.to_string()));
    if moved {
        *response.status_mut() = http::StatusCode::FOUND;
        let location = http::HeaderValue::from_static("/elsewhere");
        response.headers_mut().insert("location", location);
    }
    if page {
        *response.body_mut() = Full::from("<a href=\"/x?y\">x</a>");
        let html = http::HeaderValue::from_static("text/html");
        response.headers_mut().insert("content-type", html);
    }
    response
        .headers_mut()
        .insert("x-own", http::HeaderValue::from_static("1"));
    Ok(response)
}

impl NodeStreams for SendBack {
    fn check(&self, _: &ContainerRef) -> Result<(), SessionError> {
        Ok(())
    }

    fn exec(&self, pod: ContainerRef, _: Vec<String>, wanted: StreamsWanted) -> Opening<Session> {
        Describe.attach(pod, wanted)
    }

    fn attach(&self, pod: ContainerRef, wanted: StreamsWanted) -> Opening<Session> {
        Describe.attach(pod, wanted)
    }

    fn connect(&self, _: ContainerRef, _: u16) -> Opening<BoxedConnection> {
        let (near, far) = tokio::io::duplex(4096);
        let server = self.0.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let again = request.headers()["x-forwarded-uri"].to_str().unwrap();
            let again = Request::get(again).body(Full::<bytes::Bytes>::default());
            let service = server.get().unwrap().service();
            async move { service.oneshot(again.unwrap()).await }
        });
        tokio::spawn(async move {
            let server = hyper::server::conn::http1::Builder::new();
            server.serve_connection(TokioIo::new(far), service).await
        });
        Box::pin(async { Ok(Box::pin(near) as BoxedConnection) })
    }
}

async fn server() -> Server {
    with_pod(Server::with_streams(Arc::new(Describe))).await
}

async fn with_pod(server: Server) -> Server {
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 8080}]},
        ]},
    });
    assert_eq!(server.post(PODS, &pod).await.code, 201);
    let status = r#"{"status": {"podIP": "10.9.0.1"}}"#;
    let path = format!("{PODS}/p/status");
    let patched = server.patch(&path, "application/merge-patch+json", status);
    assert_eq!(patched.await.code, 200);
    server
}

#[tokio::test]
async fn a_pod_gets_the_request() {
    let server = server().await;
    let headers = [
        ("host", "server.example"),
        ("authorization", "Bearer secret"),
        ("connection", "x-once"),
        ("x-once", "1"),
        ("x-kept", "2"),
    ];
    let path = format!("{PODS}/p:81/proxy/a//b/%2F?x=1&y=%20%26");
    let answer = server.call("PATCH", &path, &headers, "content").await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.header("x-own"), "1");
    let seen = answer.json();
    let expected = json!({
        "pod": "p", "port": 81, "method": "PATCH", "host": "server.example",
        "forwarded": format!("{PODS}/p:81/proxy/a//b/%2F"),
        "uri": "/a//b/%2F?x=1&y=%20%26", "body": "content", "headers": seen["headers"],
    });
    assert_eq!(seen, expected);
    let names: Vec<&str> = seen["headers"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(names.contains(&"x-kept"), "{names:?}");
    for absent in ["authorization", "connection", "x-once"] {
        assert!(!names.contains(&absent), "{names:?}");
    }

    // Without a port, the pod's first port is used. Without a path, the client is redirected to the
    // root.
    let moved = server.get(&format!("{PODS}/http:p:/proxy?x=1")).await;
    assert_eq!(moved.code, 301);
    let root = format!("{PODS}/http:p:/proxy/?x=1");
    assert_eq!(moved.header("location"), root);
    let seen = server.get(&format!("{PODS}/http:p:/proxy/")).await.json();
    assert_eq!((&seen["port"], &seen["uri"]), (&json!(8080), &json!("/")));
    let moved = server.get(&format!("{PODS}/p/proxy/moved")).await;
    assert_eq!(moved.code, 302);
    assert_eq!(
        moved.header("location"),
        format!("{PODS}/p/proxy/elsewhere")
    );
    let page = server.get(&format!("{PODS}/p:81/proxy/page")).await;
    let expected = format!("<a href=\"{PODS}/p:81/proxy/x?y\">x</a>");
    assert_eq!(page.text(), expected);
}

#[tokio::test]
async fn a_service_leads_to_a_ready_pod() {
    let server = server().await;
    let service = json!({
        "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "web", "port": 80}, {"name": "other", "port": 81}]},
    });
    assert_eq!(server.post(SERVICES, &service).await.code, 201);
    let none = server.get(&format!("{SERVICES}/s:web/proxy/")).await;
    assert_eq!(none.code, 503);
    assert_eq!(none.message(), "no endpoints available for service \"s\"");
    let endpoint = |name: &str, address: &str, ready: bool| {
        json!({
            "addresses": [address], "conditions": {"ready": ready},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": name},
        })
    };
    let slice = json!({
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4", "ports": [{"name": "web", "port": 8000}],
        // Only the last endpoint is a ready pod with this address.
        "endpoints": [
            endpoint("missing", "10.9.0.9", true),
            endpoint("p", "10.9.0.2", true),
            endpoint("p", "10.9.0.1", false),
            {"addresses": ["192.0.2.1"]},
            endpoint("p", "10.9.0.1", true),
        ],
    });
    let made = server.post(SLICES, &slice).await;
    assert_eq!(made.code, 201, "{}", made.text());
    for port in ["web", "80"] {
        let seen = server
            .get(&format!("{SERVICES}/s:{port}/proxy/x"))
            .await
            .json();
        assert_eq!((&seen["port"], &seen["uri"]), (&json!(8000), &json!("/x")));
    }
    let other = server.get(&format!("{SERVICES}/s:81/proxy/")).await;
    assert_eq!(other.code, 503);
    let unknown = server.get(&format!("{SERVICES}/s:82/proxy/")).await;
    assert_eq!(
        unknown.message(),
        "no service port 82 found for service \"s\""
    );
}

#[tokio::test]
async fn problems_are_reported() {
    let server = server().await;
    for (path, code, text) in [
        (
            format!("{PODS}/ftp:p:1/proxy/"),
            400,
            "invalid pod request \"ftp:p:1\"",
        ),
        (
            format!("{PODS}/p:web/proxy/"),
            400,
            "\"web\" of a pod is not a port number",
        ),
        (
            format!("{PODS}/gone/proxy/"),
            404,
            "pods \"gone\" not found",
        ),
        (
            format!("{PODS}/p:{CLOSED}/proxy/"),
            503,
            "error trying to reach service: connection refused",
        ),
        (
            format!("{SERVICES}/gone/proxy/"),
            404,
            "services \"gone\" not found",
        ),
    ] {
        let answer = server.get(&path).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text());
        assert!(answer.message().contains(text), "{path}: {}", answer.text());
    }
    server.pod("waiting", &["c"]).await;
    let waiting = server.get(&format!("{PODS}/waiting/proxy/")).await;
    assert_eq!(
        (waiting.code, waiting.message().as_str()),
        (400, "address not allowed")
    );
}

/// Without the limit, a request that its pod sends back would take all descriptors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_sends_requests_back_gets_no_more_than_the_limit() {
    let streams = SendBack::default();
    let again = streams.0.clone();
    let server = with_pod(Server::with_streams(Arc::new(streams))).await;
    let _ = again.set(server.api.clone());
    for _ in 0..2 {
        let answer = server.get(&format!("{PODS}/p:81/proxy/a")).await;
        assert_eq!(answer.code, 429, "{}", answer.text());
        let number = limits::PASSED_ON_TO_ONE;
        let expected =
            format!("too many requests are in progress, {number} of them to the pod default/p");
        assert!(answer.message().starts_with(&expected), "{}", answer.text());
    }
}
