//! Paths, methods, queries and headers that are wrong, each with the code and
//! the reason it gets. Checked against a real kube-apiserver 1.20 unless a line
//! says otherwise.

use crate::{
    common::{CONFIG_MAPS, PODS, Server},
    watches::Lines,
};
use serde_json::json;

const NOT_FOUND: &str = "the server could not find the requested resource";

#[tokio::test]
async fn paths() {
    let server = Server::new();
    for (path, code, message) in [
        ("/api/v2", 404, NOT_FOUND),
        ("/api/v1/shoes", 404, NOT_FOUND),
        ("/apis/shoes/v1", 404, NOT_FOUND),
        ("/apis/apps/v2", 404, NOT_FOUND),
        ("/apis/apps/v1/shoes", 404, NOT_FOUND),
        ("/api/v1/namespaces/default/shoes/s", 404, NOT_FOUND),
        ("/api/v1/namespaces/default/pods/p/shoes", 404, NOT_FOUND),
        (
            "/api/v1/namespaces/default/pods/p/status/more",
            404,
            NOT_FOUND,
        ),
        ("/api/v1/namespaces/default/nodes", 404, NOT_FOUND),
        ("/api/v1/pods/p", 404, NOT_FOUND),
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
        ("/api/v1/namespaces/none/pods", 200, ""),
        ("/api/v1/namespaces/default/", 200, ""),
        (
            "/apis/apps/v1/namespaces/default/deployments/d",
            404,
            "deployments.apps \"d\" not found",
        ),
        (
            "/api/v1/namespaces/default/pods/../configmaps",
            404,
            NOT_FOUND,
        ),
        (
            "/api/v1/namespaces/default/pods/%2e%2e/configmaps",
            404,
            NOT_FOUND,
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
        ("/api/v1//namespaces", 404, NOT_FOUND),
        ("//api/v1/namespaces", 404, NOT_FOUND),
        ("/api/v1/namespaces/default/pods/%00", 404, NOT_FOUND),
        ("/api/v1/namespaces/default/pods/%ff", 404, NOT_FOUND),
        (
            "/api/v1/namespaces/default/pods/%zz",
            400,
            "the path has a percent sign that begins no escape",
        ),
        ("/api/v1/namespaces/default/pods/a%2Fb", 404, NOT_FOUND),
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
        ("/nonsense", 404, NOT_FOUND),
        ("/openapi", 404, NOT_FOUND),
        ("/healthz/none", 404, NOT_FOUND),
        ("/livez/informer-sync", 404, NOT_FOUND),
        ("/readyz/informer-sync", 200, ""),
        ("/healthz/etcd", 200, ""),
        ("/api/v1/watch", 404, NOT_FOUND),
        ("/api/v1/watch/shoes", 404, NOT_FOUND),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text());
        if code != 200 {
            let status = answer.json();
            assert_eq!(
                (&status["kind"], &status["code"]),
                (&json!("Status"), &json!(code))
            );
            assert_eq!(answer.message(), message, "{path}");
        }
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
    // HEAD is for what is no object.
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
        // The first of several counts.
        ("limit=1&limit=x", 200, ""),
        ("limit=x&limit=1", 400, "invalid syntax"),
        ("timeoutSeconds=x", 400, "invalid syntax"),
        ("watch=false", 200, ""),
        ("watch=0", 200, ""),
        (
            "labelSelector=a%3D%3D%3Db",
            400,
            "unable to parse requirement",
        ),
        ("labelSelector=%21%21", 400, "unable to parse requirement"),
        ("labelSelector=a+in+(", 400, "unable to parse requirement"),
        ("labelSelector=a,,b", 400, ""),
        ("labelSelector=-a", 400, "invalid label key"),
        ("labelSelector=a%3D-", 400, "invalid label value"),
        ("labelSelector=a%3Ex", 400, ""),
        ("labelSelector=a+in+()", 200, ""),
        ("fieldSelector=a", 400, "invalid selector"),
        ("fieldSelector=metadata.name%3E5", 400, ""),
        (
            "fieldSelector=foo%3Dbar",
            400,
            "\"foo\" is not a known field selector",
        ),
        // The real server answers 500, as if it were at fault.
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
        // 1.20 does not know these two.
        (
            "timeout=x",
            400,
            "invalid timeout specified in the request URL",
        ),
        ("sendInitialEvents=true", 422, "is forbidden for list"),
        ("timeout=30s", 200, ""),
        // Parts that cannot be decoded are passed over.
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

#[tokio::test]
async fn rule_13_options_of_writes() {
    let server = Server::new();
    server.config_map("a").await;
    let long = format!("fieldManager={}", "x".repeat(129));
    for (query, part) in [
        (
            "dryRun=",
            "dryRun: Unsupported value: []string{\"\"}: supported values: \"All\"",
        ),
        ("dryRun=x", "dryRun: Unsupported value: []string{\"x\"}"),
        ("dryRun=all", "dryRun: Unsupported value"),
        ("dryRun=All&dryRun=x", "dryRun: Unsupported value"),
        ("fieldValidation=Foo", "fieldValidation: Unsupported value"),
        ("fieldManager=%00x", "fieldManager: Invalid value"),
        (
            &long,
            "fieldManager: Too long: may not be more than 128 bytes",
        ),
    ] {
        let answer = server
            .post(&format!("{CONFIG_MAPS}?{query}"), &json!({}))
            .await;
        assert_eq!(answer.code, 422, "{query}: {}", answer.text());
        assert_eq!(answer.json()["reason"], "Invalid");
        let begin = "CreateOptions.meta.k8s.io \"\" is invalid: ";
        assert!(answer.message().starts_with(begin), "{}", answer.message());
        assert!(
            answer.message().contains(part),
            "{query}: {}",
            answer.message()
        );
    }
    let path = format!("{CONFIG_MAPS}/a");
    for (query, code) in [
        ("gracePeriodSeconds=x", 400),
        ("propagationPolicy=Foo", 422),
        ("orphanDependents=true&propagationPolicy=Orphan", 422),
        ("dryRun=x", 422),
    ] {
        let answer = server
            .call("DELETE", &format!("{path}?{query}"), &[], "")
            .await;
        assert_eq!(answer.code, code, "{query}: {}", answer.text());
    }
    for body in [
        "{",
        "[]",
        r#"{"kind":"Pod"}"#,
        r#"{"gracePeriodSeconds":"x"}"#,
    ] {
        let answer = server.call("DELETE", &path, &[], body).await;
        assert_eq!(answer.code, 400, "{body}: {}", answer.text());
    }
    assert_eq!(
        server.get(&path).await.code,
        200,
        "nothing of this deleted it"
    );
}

#[tokio::test]
async fn rule_21_accept() {
    let server = Server::new();
    for (accept, code) in [
        ("", 200),
        ("*/*", 200),
        ("application/json;q=0", 200),
        ("application/json;q=x", 200),
        ("application/json;charset=utf-8;pretty=1", 200),
        ("text/html,application/json", 200),
        ("text/html", 406),
        ("text/*", 406),
        ("*", 406),
        (",,,", 406),
        ("application/cbor", 406),
        ("application/json;as=Table;g=meta.k8s.io;v=v9", 406),
        ("application/json;as=Shoe;g=meta.k8s.io;v=v1", 406),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            406,
        ),
    ] {
        let answer = server.get_as(CONFIG_MAPS, accept).await;
        assert_eq!(answer.code, code, "{accept}: {}", answer.text());
        if code == 406 {
            assert_eq!(answer.json()["reason"], "NotAcceptable");
        }
    }
    // Neither ranges nor conditions mean anything for objects.
    for header in [
        ("range", "bytes=0-5"),
        ("range", "junk"),
        ("if-none-match", "*"),
        ("expect", "x"),
    ] {
        let answer = server.call("GET", CONFIG_MAPS, &[header], "").await;
        assert_eq!(
            (answer.code, &answer.json()["kind"]),
            (200, &json!("ConfigMapList"))
        );
    }
}

#[tokio::test]
async fn watches_asked_for_in_the_old_way() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("b").await;
    for (path, expected) in [
        (
            "/api/v1/watch/namespaces/default/configmaps",
            &["ADDED a", "ADDED b"][..],
        ),
        ("/api/v1/watch/configmaps", &["ADDED a", "ADDED b"]),
        (
            "/api/v1/watch/namespaces/default/configmaps/b",
            &["ADDED b"],
        ),
        ("/api/v1/watch/namespaces/default", &["ADDED default"]),
        ("/apis/apps/v1/watch/deployments", &[]),
    ] {
        let mut watch = Lines::open(&server, &format!("{path}?timeoutSeconds=1"), "*/*").await;
        for expected in expected {
            assert_eq!(watch.brief().await, *expected, "{path}");
        }
        assert_eq!(watch.next().await, None, "{path}");
    }
    let answer = server.call("POST", "/api/v1/watch/pods", &[], "").await;
    assert_eq!(answer.code, 405);
}

#[tokio::test]
async fn rule_28_bindings_at_the_old_place() {
    let server = Server::new();
    server.pod("p", &["c"]).await;
    let path = "/api/v1/namespaces/default/bindings";
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let bound = server.post(path, &binding).await;
    assert_eq!(
        (bound.code, &bound.json()["status"]),
        (201, &json!("Success"))
    );
    let pod = server.get(&format!("{PODS}/p")).await.json();
    assert_eq!(pod["spec"]["nodeName"], "n");
    for (body, code) in [
        (json!({"target": {"name": "n"}}), 400),
        (json!({"metadata": {"name": "p"}}), 400),
        (
            json!({"metadata": {"name": "none"}, "target": {"name": "n"}}),
            404,
        ),
        (json!({"kind": "Pod", "metadata": {"name": "p"}}), 400),
        (binding, 409),
    ] {
        let answer = server.post(path, &body).await;
        assert_eq!(answer.code, code, "{body}: {}", answer.text());
    }
}

/// What a delete answers with depends on the kind.
#[tokio::test]
async fn rule_11_answers_of_deletes() {
    let server = Server::new();
    for (plural, returned) in [
        ("configmaps", "Status"),
        ("serviceaccounts", "ServiceAccount"),
    ] {
        let path = format!("/api/v1/namespaces/default/{plural}");
        let body = json!({"metadata": {"name": "a"}});
        assert_eq!(server.post(&path, &body).await.code, 201);
        let answer = server.call("DELETE", &format!("{path}/a"), &[], "").await;
        assert_eq!(
            (answer.code, &answer.json()["kind"]),
            (200, &json!(returned))
        );
        assert_eq!(server.get(&format!("{path}/a")).await.code, 404);
    }
    server.pod("p", &["c"]).await;
    let answer = server
        .call("DELETE", &format!("{PODS}/p"), &[], "")
        .await
        .json();
    assert_eq!(
        (&answer["kind"], &answer["metadata"]["name"]),
        (&json!("Pod"), &json!("p"))
    );
}
