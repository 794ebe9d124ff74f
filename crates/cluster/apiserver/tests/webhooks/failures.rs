//! Calls that fail: unreachable, slow, untrusted and hostile webhooks.

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use serde_json::json;

use crate::{
    common::{CONFIG_MAPS, Server},
    config_map, configure,
    hook::{Hook, patch, review},
    with,
};

/// The message for a ConfigMap, with a webhook that fails; it is created if failures are
/// ignored.
async fn failure(hook: &Hook, fields: serde_json::Value) -> String {
    let server = Server::new();
    let webhook = with(hook.webhook("/v", &["*"], &["configmaps"]), fields);
    let ignoring = with(webhook.clone(), json!({"failurePolicy": "Ignore"}));
    configure(
        &server,
        "Mutating",
        "ignoring",
        std::slice::from_ref(&ignoring),
    )
    .await;
    configure(&server, "Validating", "ignoring", &[ignoring]).await;
    server.config_map("a").await;
    configure(&server, "Mutating", "failing", &[webhook]).await;
    let refused = server.post(CONFIG_MAPS, &config_map("b")).await;
    let status = refused.json();
    assert_eq!(
        (refused.code, &status["reason"]),
        (500, &json!("InternalError"))
    );
    let prefix = "Internal error occurred: failed calling webhook \"v.example.com\": ";
    let message = refused.message();
    let cause = status["details"]["causes"][0]["message"].as_str().unwrap();
    assert_eq!(message, format!("Internal error occurred: {cause}"));
    message.strip_prefix(prefix).unwrap().to_owned()
}

#[tokio::test]
async fn unreachable_webhooks() {
    let hook = Hook::start().await;
    // The port is free again, and no other server has it.
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let config = json!({"url": format!("https://127.0.0.1:{port}/v")});
    let config = json!({"clientConfig": with(config, json!({"caBundle": hook.bundle}))});
    assert_eq!(
        failure(&hook, config).await,
        format!(
            "failed to call webhook: Post \"https://127.0.0.1:{port}/v?timeout=10s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
    );
}

#[tokio::test]
async fn untrusted_webhooks() {
    let (hook, other) = (Hook::start().await, Hook::start().await);
    let config = with(hook.client_config("/v"), json!({"caBundle": other.bundle}));
    let message = failure(&hook, json!({"clientConfig": config})).await;
    let end = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message.ends_with(end), "{message}");
    let url = format!("https://localhost:{}/v", hook.address.port());
    let config = with(hook.client_config("/v"), json!({"url": url}));
    let message = failure(&hook, json!({"clientConfig": config})).await;
    let end = "x509: certificate is valid for 127.0.0.1, hook.default.svc, not localhost";
    assert!(message.ends_with(end), "{message}");
    assert!(hook.calls().is_empty());
}

#[tokio::test]
async fn a_certificate_that_is_in_the_bundle_itself_is_trusted() {
    for hook in [
        Hook::with_own_certificate().await,
        Hook::with_lone_certificate().await,
    ] {
        let server = Server::new();
        let webhook = hook.webhook("/v", &["*"], &["configmaps"]);
        configure(&server, "Validating", "a", &[webhook]).await;
        server.config_map("a").await;
        assert_eq!(hook.paths(), ["/v"]);
    }
}

#[tokio::test]
async fn slow_webhooks_time_out() {
    let hook = Hook::start().await;
    hook.on_async("/v", |_| Box::pin(std::future::pending()));
    let message = failure(&hook, json!({"timeoutSeconds": 1})).await;
    let url = format!("https://{}/v?timeout=1s", hook.address);
    assert_eq!(
        message,
        format!("failed to call webhook: Post {url:?}: context deadline exceeded")
    );
}

#[tokio::test]
async fn error_codes_and_redirects() {
    for (code, body, expected) in [
        (
            404,
            "nothing",
            "the server could not find the requested resource",
        ),
        (
            500,
            "boom",
            "an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        (
            307,
            "",
            "the server responded with the status code 307 but did not return more information",
        ),
    ] {
        let hook = Hook::start().await;
        hook.on_async("/v", move |_| {
            let response = Response::builder()
                .status(code)
                .header("location", "/elsewhere")
                .body(Full::new(Bytes::from(body)));
            Box::pin(async move { response.unwrap() })
        });
        let message = failure(&hook, json!({})).await;
        assert_eq!(message, format!("failed to call webhook: {expected}"));
        assert!(hook.paths().iter().all(|path| path == "/v"));
    }
}

#[tokio::test]
async fn invalid_responses() {
    for (body, expected) in [
        (
            "not JSON",
            "failed to call webhook: couldn't get version/kind; json parse error: ",
        ),
        (
            "{}",
            "failed to call webhook: Object 'Kind' is missing in '{}'",
        ),
        (
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#,
            "received invalid webhook response: webhook response was absent",
        ),
        (
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "x"}}"#,
            "received invalid webhook response: expected response.uid=",
        ),
    ] {
        let hook = Hook::start().await;
        hook.on_async("/v", move |_| {
            Box::pin(async move { Response::new(Full::new(Bytes::from(body))) })
        });
        let message = failure(&hook, json!({})).await;
        assert!(message.starts_with(expected), "{message}");
    }
}

#[tokio::test]
async fn responses_have_a_maximum_size() {
    let hook = Hook::start().await;
    hook.on_async("/v", |request| {
        let warning = "x".repeat(9 << 20);
        Box::pin(async move { review(&request, json!({"allowed": true, "warnings": [warning]})) })
    });
    let message = failure(&hook, json!({})).await;
    assert!(
        message.ends_with("the response is larger than 8388608 bytes"),
        "{message}"
    );
}

#[tokio::test]
async fn patches_that_cannot_be_applied() {
    for (operations, expected) in [
        (
            json!([{"op": "remove", "path": "/data/none"}]),
            "Internal error occurred: ",
        ),
        (json!([{"op": "jump"}]), "Internal error occurred: "),
        (
            json!({"data": {}}),
            "Internal error occurred: failed calling webhook \"v.example.com\": received undecodable patch in webhook response: ",
        ),
        (
            json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
            "",
        ),
    ] {
        let (server, hook) = (Server::new(), Hook::start().await);
        let webhook = hook.webhook("/v", &["UPDATE"], &["configmaps"]);
        configure(&server, "Mutating", "a", &[webhook]).await;
        let object = server.config_map("a").await;
        let answer = patch(&operations);
        hook.on("/v", move |_| answer.clone());
        let refused = server.put(&format!("{CONFIG_MAPS}/a"), &object).await;
        assert!(refused.code >= 400, "{operations}");
        assert!(
            refused.message().starts_with(expected),
            "{}",
            refused.text()
        );
        assert_eq!(server.get(&format!("{CONFIG_MAPS}/a")).await.json(), object);
    }
}
