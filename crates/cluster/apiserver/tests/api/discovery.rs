//! Discovery, version, health, OpenAPI, and the responses to unknown paths and methods.

use crate::common::Server;
use longshore_model::release::{MAJOR, MINOR, VERSION};
use serde_json::json;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2_BETA: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

#[tokio::test]
async fn legacy_documents() {
    let server = Server::new();
    for path in ["/api", "/apis", "/apis/batch", "/apis/batch/v1"] {
        let answer = server.get(path).await;
        assert_eq!(answer.code, 200, "{path}");
        let name = path.trim_matches('/').replace('/', "_");
        insta::assert_json_snapshot!(format!("legacy_{name}"), answer.json());
    }
    let core = server.get("/api/v1").await.json();
    let names: Vec<&str> = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(names.join(" "));
    assert_eq!(server.get("/apis/shoes/v1").await.code, 404);
    assert_eq!(server.get("/apis/shoes").await.code, 404);
}

#[tokio::test]
async fn aggregated_documents() {
    let server = Server::new();
    let kubectl = format!("{V2},{V2_BETA},application/json");
    let answer = server.get_as("/apis", &kubectl).await;
    assert_eq!(answer.header("content-type"), V2);
    insta::assert_json_snapshot!("aggregated_apis", answer.json());
    let beta = server
        .get_as("/api", &format!("{V2_BETA},application/json"))
        .await;
    assert_eq!(beta.header("content-type"), V2_BETA);
    assert_eq!(beta.json()["apiVersion"], "apidiscovery.k8s.io/v2beta1");
    assert_eq!(beta.json()["items"][0]["metadata"], json!({}));
    let plain = server.get_as("/api", "application/json").await;
    assert_eq!(
        (plain.header("content-type"), plain.json()["kind"].clone()),
        ("application/json", json!("APIVersions"))
    );

    let tag = answer.header("etag");
    let again = server
        .call(
            "GET",
            "/apis",
            &[("accept", &kubectl), ("if-none-match", tag)],
            "",
        )
        .await;
    assert_eq!((again.code, again.bytes.len()), (304, 0));
}

#[tokio::test]
async fn version_and_health() {
    let server = Server::new();
    let version = server.get("/version").await.json();
    assert_eq!(
        (&version["major"], &version["minor"], &version["gitVersion"]),
        (&json!(MAJOR), &json!(MINOR), &json!(VERSION))
    );
    for path in ["/healthz", "/livez", "/readyz", "/livez/ping"] {
        let answer = server.get(path).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"), "{path}");
    }
    assert_eq!(
        server.get("/readyz?verbose").await.text(),
        "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]informer-sync ok\n[+]shutdown ok\nreadyz check passed\n"
    );
    let head = server.call("HEAD", "/healthz", &[], "").await;
    assert_eq!((head.code, head.bytes.len()), (200, 0));
}

#[tokio::test]
async fn openapi() {
    let server = Server::new();
    let index = server.get("/openapi/v3").await.json();
    let paths = index["paths"].as_object().unwrap();
    assert!(
        paths.contains_key("api/v1") && paths.contains_key("apis/batch/v1"),
        "{index}"
    );
    for (name, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let answer = server.get(url).await;
        assert_eq!(answer.code, 200, "{name}: {}", answer.text());
        assert!(
            answer.json()["openapi"].as_str().unwrap().starts_with("3."),
            "{name}"
        );
    }
    assert_eq!(server.get("/openapi/v3/apis/shoes/v1").await.code, 404);
    assert_eq!(server.get_as("/openapi/v2", "text/html").await.code, 406);
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = server.get_as("/openapi/v2", accept).await;
    assert_eq!(protobuf.code, 200);
    assert!(protobuf.bytes.len() > 10_000, "{}", protobuf.bytes.len());
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let server = Server::new();
    let missing = server.get("/nonsense").await;
    insta::assert_json_snapshot!("unknown_path", missing.json());
    let wrong = server.call("POST", "/version", &[], "").await;
    insta::assert_json_snapshot!("wrong_method", wrong.json());
    for (method, path, code) in [
        ("GET", "/api/v1/shoes", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/api/v1/pods/p", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/namespaces/default/pods/p/shoes", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/c/status", 404),
        ("DELETE", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/p", 405),
        ("OPTIONS", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/namespaces/default/pods/p/log", 405),
    ] {
        let answer = server.call(method, path, &[], "").await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text());
        assert_eq!(answer.json()["kind"], "Status");
    }
}

#[tokio::test]
async fn rule_23_bindings_support_only_create() {
    let server = Server::new();
    let list = server.get("/api/v1").await.json();
    let resources = list["resources"].as_array().unwrap();
    let bindings = json!({"name": "bindings", "singularName": "binding", "namespaced": true,
        "kind": "Binding", "verbs": ["create"]});
    assert_eq!(resources[0], bindings);
}

#[tokio::test]
async fn the_pretty_parameter_indents_responses() {
    let server = Server::new();
    server.config_map("a").await;
    let plain = server.get("/api/v1/configmaps").await;
    let pretty = server.get("/api/v1/configmaps?pretty=true").await;
    let value = plain.json();
    assert_eq!(pretty.json(), value);
    // A single line ends with a newline, as by Go's encoder; indented JSON does not.
    let text = plain.text();
    assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
    assert!(!pretty.text().ends_with('\n'));
    let start = "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n";
    assert!(pretty.text().starts_with(start), "{}", pretty.text());
    let missing = server
        .get("/api/v1/namespaces/default/configmaps/b?pretty=1")
        .await;
    assert!(
        missing.text().contains("\n  \"kind\""),
        "{}",
        missing.text()
    );
}

#[tokio::test]
async fn metrics_have_kubernetes_names() {
    let server = Server::new();
    server.config_map("a").await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.code, 200);
    let text = answer.text();
    for line in [
        r#"apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 1"#,
        r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#,
        r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#,
        "# TYPE apiserver_request_total counter",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// The address of a response's bytes. Equal addresses mean that the bytes were generated
/// once.
async fn address_of(server: &Server, path: &str, accept: &str) -> usize {
    let answer = server.get_as(path, accept).await;
    assert_eq!(answer.code, 200, "{path}: {}", answer.text());
    answer.bytes.as_ptr() as usize
}

#[tokio::test]
async fn documents_about_kinds_are_generated_once() {
    let server = Server::new();
    let documents = [
        ("/api", "application/json"),
        ("/apis", "application/json"),
        ("/api", V2),
        ("/apis", V2),
        ("/openapi/v3", "application/json"),
        ("/openapi/v3/apis/batch/v1", "application/json"),
    ];
    // A custom kind of this test: no other test shares these documents.
    let name = "shoes.example.com";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "shoes", "singular": "shoe", "kind": "Shoe", "listKind": "ShoeList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = server.post(definitions, &definition).await;
    assert_eq!(made.code, 201, "{}", made.text());
    for (path, accept) in documents {
        let first = address_of(&server, path, accept).await;
        assert_eq!(address_of(&server, path, accept).await, first, "{path}");
    }
    let before = server.get("/apis").await.text();
    assert!(before.contains("example.com"));
    let gone = server
        .call("DELETE", &format!("{definitions}/{name}"), &[], "")
        .await;
    assert_eq!(gone.code, 200, "{}", gone.text());
    let after = server.get("/apis").await.text();
    assert!(!after.contains("example.com"), "{after}");
    assert_eq!(server.get("/apis/example.com/v1").await.code, 404);
}
