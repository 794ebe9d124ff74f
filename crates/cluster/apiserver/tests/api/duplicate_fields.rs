//! Duplicate fields in request bodies (rule 14).

use crate::common::{Answer, CONFIG_MAPS, Server};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const STRICT: &str = "fieldValidation=Strict";

fn warnings_of(answer: &Answer) -> Vec<String> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

/// Sends the request, with options in its query.
async fn call(
    server: &Server,
    method: &str,
    query: &str,
    media_type: &str,
    body: &'static str,
) -> Answer {
    let place = if method == "POST" { "" } else { "/b" };
    let path = format!("{CONFIG_MAPS}{place}?{query}");
    let headers = [("content-type", media_type)];
    server.call(method, &path, &headers, body).await
}

#[tokio::test]
async fn rule_14_duplicates_in_json_are_reported_with_their_paths() {
    let server = &Server::new();
    let body = r#"{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"},"colour":1}"#;
    let made = call(server, "POST", "", JSON, body).await;
    assert_eq!(made.code, 201);
    assert_eq!(
        warnings_of(&made),
        [
            r#"299 - "duplicate field \"metadata.name\"""#,
            r#"299 - "duplicate field \"data.k\"""#,
            r#"299 - "unknown field \"colour\"""#,
        ]
    );
    assert_eq!(made.json()["metadata"]["name"], "b");
    assert_eq!(made.json()["data"]["k"], "2");
    for method in ["POST", "PUT"] {
        let answer = call(server, method, STRICT, JSON, body).await;
        assert_eq!(answer.code, 400, "{method}");
        let expected = r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "metadata.name", duplicate field "data.k", unknown field "colour""#;
        assert_eq!(answer.message(), expected);
    }
    let answer = call(server, "PUT", "fieldValidation=Ignore", JSON, body).await;
    assert_eq!((answer.code, warnings_of(&answer).len()), (200, 0));
}

#[tokio::test]
async fn rule_14_duplicates_in_yaml_are_reported_with_their_lines() {
    let server = &Server::new();
    let body = "metadata: {name: b}\ndata:\n  k: '1'\n  k: '2'\ncolour: 1\ndata:\n  l: '3'\n";
    let made = call(server, "POST", "", YAML, body).await;
    assert_eq!(made.code, 201);
    assert_eq!(
        warnings_of(&made),
        [
            r#"299 - "line 4: key \"k\" already set in map""#,
            r#"299 - "line 7: key \"data\" already set in map""#,
            r#"299 - "unknown field \"colour\"""#,
        ]
    );
    assert_eq!(made.json()["data"]["l"], "3");
    let answer = call(server, "PUT", STRICT, YAML, body).await;
    assert_eq!(answer.code, 400);
    assert_eq!(
        answer.message(),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"k\" already set in map\n  line 7: key \"data\" already set in map, unknown field \"colour\""
    );
    // Finalize is an update like others.
    let space = "metadata: {name: default}\nmetadata: {name: default}\n";
    let path = format!("/api/v1/namespaces/default/finalize?{STRICT}");
    let answer = server
        .call("PUT", &path, &[("content-type", YAML)], space)
        .await;
    assert_eq!(answer.code, 400, "{}", answer.message());
}

#[tokio::test]
async fn rule_14_duplicates_in_patches_are_invalid() {
    let server = &Server::new();
    let body = r#"{"metadata":{"name":"b"}}"#;
    assert_eq!(call(server, "POST", "", JSON, body).await.code, 201);
    let patch = r#"{"data":{"x":"1","x":"2"}}"#;
    let answer = call(server, "PATCH", "", MERGE, patch).await;
    assert_eq!((answer.code, warnings_of(&answer).len()), (200, 1));
    let answer = call(server, "PATCH", STRICT, MERGE, patch).await;
    assert_eq!(answer.code, 422);
    let part = r#"strict decoding error: duplicate field "data.x""#;
    assert!(answer.message().contains(part), "{}", answer.message());
}

/// An apply patch is parsed as YAML, even if it is JSON.
#[tokio::test]
async fn rule_14_duplicates_in_an_apply_patch_are_a_bad_request() {
    let server = &Server::new();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  a: x\n  a: y\n";
    let json = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\n\"metadata\":{\"name\":\"b\"},\n\"data\":{\"a\":\"x\",\"a\":\"y\"}}";
    for (body, line) in [(yaml, 7), (json, 3)] {
        let problem = format!("line {line}: key \"a\" already set in map");
        let query = format!("fieldManager=me&{STRICT}");
        let answer = call(server, "PATCH", &query, APPLY, body).await;
        let expected = format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {problem}"
        );
        assert_eq!((answer.code, &*answer.message()), (400, &*expected));
        for (query, warnings) in [
            ("fieldManager=me", vec![format!("299 - {problem:?}")]),
            ("fieldManager=me&fieldValidation=Ignore", Vec::new()),
        ] {
            let answer = call(server, "PATCH", query, APPLY, body).await;
            assert!(answer.code < 300, "{}", answer.message());
            assert_eq!(warnings_of(&answer), warnings);
            assert_eq!(answer.json()["data"]["a"], "y");
        }
    }
}
