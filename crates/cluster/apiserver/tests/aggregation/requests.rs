//! Requests to an aggregated API server.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{API_SERVICES, FISH, start_available, until};

#[tokio::test]
async fn a_request_arrives_with_its_user() {
    let (server, backend) = start_available().await;
    let target = format!("{FISH}/a/deep/path?labelSelector=a%3Db&dryRun=All");
    let headers = [
        ("authorization", "Bearer secret"),
        ("x-remote-user", "intruder"),
        ("x-remote-extra-scopes", "all"),
        ("accept", "application/json"),
        ("content-type", "application/json"),
    ];
    let answer = server
        .call("POST", &target, &headers, r#"{"kind":"Fish"}"#)
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["path"], format!("{FISH}/a/deep/path"));
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    let call = &backend.calls(&format!("{FISH}/a/deep/path"))[0];
    assert_eq!(
        (call.method.as_str(), call.target.as_str()),
        ("POST", target.as_str())
    );
    assert_eq!(&call.body[..], br#"{"kind":"Fish"}"#);
    let all = |name: &str| -> Vec<&str> {
        let values = call.headers.get_all(name).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    };
    assert_eq!(all("x-remote-user"), ["longshore-admin"]);
    assert_eq!(
        all("x-remote-group"),
        ["system:masters", "system:authenticated"]
    );
    assert_eq!(all("accept"), ["application/json"]);
    assert_eq!(all("host"), ["backend.default.svc:443"]);
    for absent in ["authorization", "x-remote-extra-scopes"] {
        assert!(all(absent).is_empty(), "{absent}");
    }
    // An impersonated user is the user of the request.
    let headers = [
        ("impersonate-user", "me"),
        ("impersonate-group", "system:masters"),
    ];
    server.call("GET", &format!("{FISH}/b"), &headers, "").await;
    let call = &backend.calls(&format!("{FISH}/b"))[0];
    assert_eq!(call.headers["x-remote-user"], "me");
    assert!(!call.headers.contains_key("impersonate-user"));
}

#[tokio::test]
async fn permissions_are_checked_before_a_request_is_forwarded() {
    let (server, backend) = start_available().await;
    let headers = [("impersonate-user", "me")];
    let refused = server.call("GET", &format!("{FISH}/a"), &headers, "").await;
    assert_eq!(refused.code, 403);
    let message = r#"fish.fish.example.com "a" is forbidden: User "me" cannot get resource "fish" in API group "fish.example.com" in the namespace "default""#;
    assert_eq!(refused.message(), message);
    assert!(backend.calls(&format!("{FISH}/a")).is_empty());
}

#[tokio::test]
async fn errors_of_the_server_are_returned_and_redirects_are_not_followed() {
    let (server, backend) = start_available().await;
    let path = format!("{FISH}/missing");
    backend.answer(&path, 404, &json!({"kind": "Status", "code": 404}));
    let answer = server.get(&path).await;
    assert_eq!(
        (answer.code, &answer.json()["kind"]),
        (404, &json!("Status"))
    );
    let answer = server.get(&format!("{FISH}/elsewhere")).await;
    let text = "the backend attempted to redirect this request, which is not permitted";
    assert_eq!((answer.code, answer.text().as_str()), (502, text));
}

#[tokio::test]
async fn a_watch_arrives_while_it_is_open() {
    let (server, _backend) = start_available().await;
    let request = Request::get(format!("{FISH}?watch=true"));
    let response = server.send(request.body(Full::default()).unwrap()).await;
    let mut body = response.into_body();
    let frame = body.frame().await.unwrap().unwrap();
    let expected = Bytes::from_static(b"{\"type\":\"ADDED\"}\n");
    assert_eq!(frame.into_data().unwrap(), expected);
}

#[tokio::test]
async fn a_connection_is_upgraded() {
    let (server, _backend) = start_available().await;
    let request = Request::get(format!("{FISH}/a/exec"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket");
    let response = server.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["upgrade"], "websocket");
    let upgraded = hyper::upgrade::on(response).await.unwrap();
    let mut io = TokioIo::new(upgraded);
    io.write_all(b"hello").await.unwrap();
    let mut received = [0; 5];
    io.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"HELLO");
}

#[tokio::test]
async fn a_server_that_does_not_respond_holds_up_only_its_own_requests() {
    let (server, _backend) = start_available().await;
    let service = server.api.service();
    let slow = tokio::spawn(async move {
        let request = Request::get(format!("{FISH}/never")).body(Full::<Bytes>::default());
        tower::ServiceExt::oneshot(service, request.unwrap()).await
    });
    for index in 0..20 {
        assert_eq!(server.get(&format!("{FISH}/{index}")).await.code, 200);
        assert_eq!(server.get(API_SERVICES).await.code, 200);
    }
    assert!(!slow.is_finished());
    slow.abort();
    // The time limit of a request applies.
    let late = server.get(&format!("{FISH}/never?timeout=50ms")).await;
    assert_eq!(late.code, 504);
}

/// Without the limit, a request that its server sends back would take all descriptors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sends_requests_back_gets_no_more_than_the_limit() {
    let (server, backend) = start_available().await;
    backend.send_back_to(&server.api);
    let path = format!("{FISH}/again");
    let answer = server.get(&path).await;
    assert_eq!(answer.code, 429, "{}", answer.text());
    let most = longshore_apiserver::limits::PASSED_ON_TO_ONE;
    let message = format!(
        "too many requests are in progress, {most} of them to the APIService v1.fish.example.com: try again, and check that it does not send them back to this API server"
    );
    assert_eq!(answer.message(), message);
    assert_eq!(backend.calls(&path).len(), most);
    // All requests have ended.
    assert_eq!(server.get(&format!("{FISH}/a")).await.code, 200);
    assert_eq!(server.get(&path).await.code, 429);
    assert_eq!(backend.calls(&path).len(), 2 * most);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_counts_until_it_has_ended() {
    let (server, _backend) = start_available().await;
    let mut watches = Vec::new();
    for _ in 0..longshore_apiserver::limits::PASSED_ON_TO_ONE {
        let request = Request::get(format!("{FISH}?watch=true"));
        let response = server.send(request.body(Full::default()).unwrap()).await;
        assert_eq!(response.status(), 200);
        watches.push(response);
    }
    let path = format!("{FISH}/a");
    assert_eq!(server.get(&path).await.code, 429);
    assert_eq!(server.get(API_SERVICES).await.code, 200);
    watches.pop();
    let next = async || (server.get(&path).await.code == 200).then_some(());
    until("the end of a watch", next).await;
}
