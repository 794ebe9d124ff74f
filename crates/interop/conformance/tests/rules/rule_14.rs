//! Rule 14: unknown and duplicate fields.

use longshore_conformance::{ApiTest, PatchType, Response};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

const VALIDATION: &str =
    "fieldValidation requires Kubernetes 1.23: 1.20 drops unknown fields silently";

fn misspelt(name: &str) -> Value {
    with(
        deployment(name),
        &[
            ("/spec/replica", json!(2)),
            ("/spec/template/spec/containers/0/imagePolicy", json!("x")),
        ],
    )
}

const UNKNOWN: [&str; 2] = [
    r#"unknown field "spec.replica""#,
    r#"unknown field "spec.template.spec.containers[0].imagePolicy""#,
];

#[track_caller]
fn warned(response: &Response, texts: &[&str]) {
    let mut warnings = response.headers("warning");
    warnings.sort();
    let expected: Vec<String> = texts
        .iter()
        .map(|text| format!("299 - {:?}", text))
        .collect();
    assert_eq!(warnings, expected);
}

#[tokio::test]
async fn rule_14_unknown_fields_are_dropped() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let made = test.create(&path, &misspelt("a")).await;
    assert_eq!(made["spec"].get("replica"), None, "{made}");
    let container = &made["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container.get("imagePolicy"), None, "{made}");
}

#[tokio::test]
async fn rule_14_unknown_fields_cause_warnings_by_default() {
    let test = ApiTest::start().await;
    if test.skip_on_old(VALIDATION) {
        return;
    }
    let path = test.path("apps/v1", "deployments");
    for (name, query) in [
        ("a", ""),
        ("b", "?fieldValidation=Warn"),
        ("c", "?fieldValidation="),
    ] {
        let response = test.post(&format!("{path}{query}"), &misspelt(name)).await;
        response.is(201);
        warned(&response, &UNKNOWN);
    }
    let one = format!("{path}/a");
    let response = test.put(&one, &misspelt("a")).await;
    response.ok();
    warned(&response, &UNKNOWN);
    let patch = json!({"spec": {"replica": 3}});
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let response = test.patch(&one, kind, &patch).await;
        response.ok();
        warned(&response, &UNKNOWN[..1]);
    }
}

#[tokio::test]
async fn rule_14_strict_rejects_unknown_fields() {
    let test = ApiTest::start().await;
    if test.skip_on_old(VALIDATION) {
        return;
    }
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    let strict = "fieldValidation=Strict";
    let response = test.post(&format!("{path}?{strict}"), &misspelt("a")).await;
    let status = response.refused(400, "BadRequest");
    assert_eq!(
        status["message"],
        format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: {}, {}",
            UNKNOWN[0], UNKNOWN[1]
        )
    );
    test.get(&one).await.refused(404, "NotFound");
    test.create(&format!("{path}?{strict}"), &deployment("a"))
        .await;
    let response = test.put(&format!("{one}?{strict}"), &misspelt("a")).await;
    response.refused(400, "BadRequest");
    let patch = json!({"spec": {"replica": 3}});
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let response = test.patch(&format!("{one}?{strict}"), kind, &patch).await;
        let status = response.refused(422, "Invalid");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(UNKNOWN[0]), "{message}");
    }
}

#[tokio::test]
async fn rule_14_ignore_returns_no_warnings() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let response = test
        .post(&format!("{path}?fieldValidation=Ignore"), &misspelt("a"))
        .await;
    response.is(201);
    warned(&response, &[]);
}

#[tokio::test]
async fn rule_14_duplicate_fields_are_reported() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let duplicate = |name: &str| {
        format!(
            r#"{{"metadata": {{"name": "{name}"}}, "data": {{"a": "1"}}, "data": {{"a": "2"}}}}"#
        )
    };
    let post = async |query: &str, body: String| {
        let request = test.request("POST", &format!("{maps}?fieldValidation={query}"));
        request.body("application/json", body).send().await
    };
    // The last value is used.
    let made = post("Ignore", duplicate("a")).await.is(201);
    assert_eq!(made["data"]["a"], "2");
    if test.is_newer(VALIDATION) {
        let response = post("Warn", duplicate("b")).await;
        response.is(201);
        warned(&response, &[r#"duplicate field "data""#]);
        let status = post("Strict", duplicate("c"))
            .await
            .refused(400, "BadRequest");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(r#"duplicate field "data""#), "{message}");
    }
}

#[tokio::test]
async fn rule_14_errors_are_in_document_order() {
    let test = ApiTest::start().await;
    if test.skip_on_old(VALIDATION) {
        return;
    }
    let sets = test.path("apps/v1", "replicasets");
    let text = r#"{"metadata": {"name": "a"}, "spec": {"y": {"z": 1, "z": 1}, "replicas": 2,
        "replicas": 3, "y": 2, "selector": {"matchLabels": {"a": "b", "a": "c"}},
        "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"w": 1, "containers": []}}}}"#;
    let request = test.request("POST", &format!("{sets}?fieldValidation=Strict"));
    let response = request
        .body("application/json", text.to_owned())
        .send()
        .await;
    let status = response.refused(400, "BadRequest");
    let expected = r#"strict decoding error: unknown field "spec.y", duplicate field "spec.replicas", duplicate field "spec.selector.matchLabels.a", unknown field "spec.template.spec.w""#;
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn rule_14_other_values_are_rejected() {
    let test = ApiTest::start().await;
    if test.skip_on_old(VALIDATION) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let cause = [("FieldValueNotSupported", "fieldValidation")];
    let response = test
        .post(&format!("{maps}?fieldValidation=Some"), &config_map("a"))
        .await;
    response.refused_for(422, "Invalid", &cause);
}

#[tokio::test]
async fn rule_14_values_of_the_wrong_type_are_always_rejected() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    for (pointer, value) in [
        ("/spec/replicas", json!("three")),
        ("/spec/template/spec/containers", json!({})),
        ("/metadata/labels", json!({"a": 1})),
        ("/metadata/name", json!(5)),
        ("/spec", json!([])),
    ] {
        let wrong = with(deployment("a"), &[(pointer, value)]);
        for query in ["", "?fieldValidation=Ignore"] {
            let response = test.post(&format!("{path}{query}"), &wrong).await;
            let status = response.refused(400, "BadRequest");
            let message = status["message"].as_str().unwrap();
            assert!(
                message.contains("cannot be handled as a Deployment"),
                "{message}"
            );
        }
    }
    for body in ["", "{", "[]", "null", "\"text\"", "{} x", "\u{0}"] {
        let response = test
            .request("POST", &path)
            .body("application/json", body)
            .send()
            .await;
        assert!(
            (400..500).contains(&response.code),
            "{body:?}: {}",
            response.text()
        );
    }
}
