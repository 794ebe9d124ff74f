//! Options, media types and legacy paths that are invalid or rare, each with its code and
//! reason. Verified against a real kube-apiserver 1.20.

use crate::{
    common::{CONFIG_MAPS, PODS, Server},
    watches::Lines,
};
use serde_json::json;

#[tokio::test]
async fn rule_13_options_of_writes() {
    let server = Server::new();
    server.config_map("a").await;
    let long = format!("fieldManager={}", "x".repeat(129));
    for (query, part) in [
        (
            "dryRun=",
            "dryRun: Unsupported value: [\"\"]: supported values: \"All\"",
        ),
        ("dryRun=x", "dryRun: Unsupported value: [\"x\"]"),
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
        "no invalid delete deleted it"
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
    // Ranges and conditions do not apply to objects.
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
async fn legacy_watch_paths() {
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
async fn rule_28_bindings_at_the_legacy_path() {
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

/// The response to a delete depends on the kind.
#[tokio::test]
async fn rule_11_responses_to_deletes() {
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
