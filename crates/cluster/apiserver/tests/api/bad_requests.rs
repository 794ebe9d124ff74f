//! Invalid paths, methods, queries and headers, each with its code and reason. Verified
//! against a real kube-apiserver 1.20 unless a comment says otherwise.

use crate::common::{CONFIG_MAPS, Server};
use serde_json::json;

const NOT_FOUND: &str = "the server could not find the requested resource";

/// A GET that must be rejected with this code and message.
async fn assert_rejected(server: &Server, path: &str, code: u16, message: &str) {
    let answer = server.get(path).await;
    assert_eq!(answer.code, code, "{path}: {}", answer.text());
    let status = answer.json();
    assert_eq!(
        (&status["kind"], &status["code"]),
        (&json!("Status"), &json!(code))
    );
    assert_eq!(answer.message(), message, "{path}");
}

#[tokio::test]
async fn paths() {
    let server = Server::new();
    for path in [
        "/api/v2",
        "/api/v1/shoes",
        "/apis/shoes/v1",
        "/apis/apps/v2",
        "/apis/apps/v1/shoes",
        "/api/v1/namespaces/default/shoes/s",
        "/api/v1/namespaces/default/pods/p/shoes",
        "/api/v1/namespaces/default/pods/p/status/more",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/p",
        "/api/v1/namespaces/default/pods/../configmaps",
        "/api/v1/namespaces/default/pods/%2e%2e/configmaps",
        "/api/v1//namespaces",
        "//api/v1/namespaces",
        "/api/v1/namespaces/default/pods/%00",
        "/api/v1/namespaces/default/pods/%ff",
        "/api/v1/namespaces/default/pods/a%2Fb",
        "/nonsense",
        "/openapi",
        "/healthz/none",
        "/livez/informer-sync",
        "/api/v1/watch",
        "/api/v1/watch/shoes",
    ] {
        assert_rejected(&server, path, 404, NOT_FOUND).await;
    }
    for (path, code, message) in [
        ("/api/v1/nodes/n", 404, "nodes \"n\" not found"),
        (
            "/api/v1/namespaces/none",
            404,
            "namespaces \"none\" not found",
        ),
        (
            "/api/v1/namespaces/none/pods/p",
            404,
            "pods \"p\" not found",
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments/d",
            404,
            "deployments.apps \"d\" not found",
        ),
        (
            "/api/v1/namespaces/default/pods/%2e%2e",
            400,
            "Name parameter invalid: \"..\": may not be '..'",
        ),
        (
            "/api/v1/namespaces/default/pods/.",
            400,
            "Name parameter invalid: \".\": may not be '.'",
        ),
        (
            "/api/v1/namespaces/default/pods/%zz",
            400,
            "the path has a percent sign that begins no escape",
        ),
        (
            "/api/v1/namespaces/default/pods/a%20b",
            404,
            "pods \"a b\" not found",
        ),
        (
            "/api/v1/namespaces/default/pods/A_B",
            404,
            "pods \"A_B\" not found",
        ),
    ] {
        assert_rejected(&server, path, code, message).await;
    }
    for path in [
        "/api/v1/namespaces/none/pods",
        "/api/v1/namespaces/default/",
        "/readyz/informer-sync",
        "/healthz/etcd",
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.code, 200, "{path}: {}", answer.text());
    }
    let long = format!("{CONFIG_MAPS}/{}", "x".repeat(30_000));
    assert_eq!(server.get(&long).await.code, 404);
    let deep = "/api".repeat(10_000);
    assert_eq!(server.get(&deep).await.code, 404);
}

#[tokio::test]
async fn methods() {
    let server = Server::new();
    let message = "the server does not allow this method on the requested resource";
    let item = format!("{CONFIG_MAPS}/c");
    for (path, allowed) in [
        ("/version", "GET"),
        ("/api/v1", "GET"),
        (CONFIG_MAPS, "GET, POST, DELETE"),
        (&item, "GET, PUT, PATCH, DELETE"),
        ("/api/v1/configmaps", "GET"),
        ("/api/v1/namespaces", "GET, POST"),
        (
            "/api/v1/namespaces/default/pods/p/status",
            "GET, PUT, PATCH",
        ),
        ("/api/v1/namespaces/default/pods/p/log", "GET"),
        ("/api/v1/namespaces/default/pods/p/binding", "POST"),
        ("/api/v1/namespaces/default/bindings", "POST"),
        ("/api/v1/namespaces/default/finalize", "PUT"),
        ("/api/v1/watch/pods", "GET"),
        (
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            "POST",
        ),
    ] {
        for method in [
            "OPTIONS", "TRACE", "CONNECT", "SHOE", "GET", "PUT", "POST", "PATCH", "DELETE",
        ] {
            if allowed.split(", ").any(|allowed| allowed == method) {
                continue;
            }
            let answer = server.call(method, path, &[], "").await;
            assert_eq!(answer.code, 405, "{method} {path}: {}", answer.text());
            assert_eq!(answer.json()["reason"], "MethodNotAllowed");
            assert_eq!(answer.message(), message);
            assert_eq!(answer.header("allow"), allowed, "{method} {path}");
        }
    }
    // HEAD is only allowed for paths that are not objects.
    for (path, code) in [
        ("/healthz", 200),
        ("/apis", 200),
        ("/version", 405),
        (CONFIG_MAPS, 405),
    ] {
        let answer = server.call("HEAD", path, &[], "").await;
        assert_eq!((answer.code, answer.bytes.len()), (code, 0), "{path}");
    }
    // Probes may use any method.
    assert_eq!(server.call("POST", "/healthz", &[], "").await.text(), "ok");
}

#[tokio::test]
async fn queries() {
    let server = Server::new();
    server.config_map("a").await;
    for (query, code, part) in [
        (
            "limit=x",
            400,
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        ("limit=1.5", 400, "parsing \"1.5\": invalid syntax"),
        ("limit=", 400, "parsing \"\": invalid syntax"),
        ("limit=99999999999999999999", 400, "value out of range"),
        ("limit=-1", 200, ""),
        // Of a repeated parameter, the first value is used.
        ("limit=1&limit=x", 200, ""),
        ("limit=x&limit=1", 400, "invalid syntax"),
        ("timeoutSeconds=x", 400, "invalid syntax"),
        ("watch=false", 200, ""),
        ("watch=0", 200, ""),
        (
            "labelSelector=a%3D%3D%3Db",
            400,
            "unable to parse requirement: found '=', expected: identifier",
        ),
        ("labelSelector=%21%21", 400, "unable to parse requirement"),
        ("labelSelector=a+in+(", 400, "unable to parse requirement"),
        ("labelSelector=a,,b", 400, ""),
        ("labelSelector=-a", 400, "name part must consist of"),
        ("labelSelector=a%3D-", 400, "a valid label must be"),
        ("labelSelector=a%3Ex", 400, ""),
        ("labelSelector=a+in+()", 200, ""),
        ("fieldSelector=a", 400, "invalid selector"),
        ("fieldSelector=metadata.name%3E5", 400, ""),
        (
            "fieldSelector=foo%3Dbar",
            400,
            "\"foo\" is not a known field selector",
        ),
        (
            "resourceVersion=x",
            400,
            "resourceVersion: Invalid value: \"x\"",
        ),
        ("resourceVersion=-1", 400, "Invalid value"),
        (
            "resourceVersion=99999999999",
            504,
            "Too large resource version: 99999999999, current:",
        ),
        ("continue=x", 400, "continue key is not valid"),
        ("continue=%21", 400, "continue key is not valid"),
        (
            "resourceVersionMatch=Exact",
            422,
            "is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=1&resourceVersionMatch=x",
            422,
            "supported values: \"Exact\", \"NotOlderThan\"",
        ),
        // Kubernetes 1.20 does not support these two.
        (
            "timeout=x",
            400,
            "invalid timeout specified in the request URL",
        ),
        ("sendInitialEvents=true", 422, "is forbidden for list"),
        ("timeout=30s", 200, ""),
        // Parts that cannot be decoded are ignored.
        ("%zz", 200, ""),
        ("limit=%zz", 200, ""),
        ("limit=x;y", 200, ""),
        ("&&&=&=", 200, ""),
        ("labelSelector=%ff", 400, "UTF-8"),
    ] {
        let answer = server.get(&format!("{CONFIG_MAPS}?{query}")).await;
        assert_eq!(answer.code, code, "{query}: {}", answer.text());
        if code != 200 {
            assert_eq!(answer.json()["kind"], "Status");
            assert!(
                answer.message().contains(part),
                "{query}: {}",
                answer.message()
            );
        }
    }
    let long = format!("{CONFIG_MAPS}?labelSelector=a+in+({})", "b,".repeat(20_000));
    assert_eq!(server.get(&long).await.code, 200);
}
