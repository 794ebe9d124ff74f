//! Rule 14: what becomes of fields that nobody knows, and of those given
//! twice.

use longshore_conformance::{Answer, ApiTest, PatchType};
use serde_json::{Value, json};

use crate::common::{config_map, deployment, with};

const VALIDATION: &str = "fieldValidation is of 1.23: 1.20 drops unknown fields silently";

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
fn warned(answer: &Answer, texts: &[&str]) {
    let mut warnings = answer.headers("warning");
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
async fn rule_14_by_default_they_are_warned_of() {
    let test = ApiTest::start().await;
    if test.lacks(VALIDATION) {
        return;
    }
    let path = test.path("apps/v1", "deployments");
    for (name, query) in [
        ("a", ""),
        ("b", "?fieldValidation=Warn"),
        ("c", "?fieldValidation="),
    ] {
        let answer = test.post(&format!("{path}{query}"), &misspelt(name)).await;
        answer.is(201);
        warned(&answer, &UNKNOWN);
    }
    let one = format!("{path}/a");
    let answer = test.put(&one, &misspelt("a")).await;
    answer.ok();
    warned(&answer, &UNKNOWN);
    let patch = json!({"spec": {"replica": 3}});
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let answer = test.patch(&one, kind, &patch).await;
        answer.ok();
        warned(&answer, &UNKNOWN[..1]);
    }
}

#[tokio::test]
async fn rule_14_strict_refuses_them() {
    let test = ApiTest::start().await;
    if test.lacks(VALIDATION) {
        return;
    }
    let path = test.path("apps/v1", "deployments");
    let one = format!("{path}/a");
    let strict = "fieldValidation=Strict";
    let answer = test.post(&format!("{path}?{strict}"), &misspelt("a")).await;
    let status = answer.refused(400, "BadRequest");
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
    let answer = test.put(&format!("{one}?{strict}"), &misspelt("a")).await;
    answer.refused(400, "BadRequest");
    let patch = json!({"spec": {"replica": 3}});
    for kind in [PatchType::Merge, PatchType::Strategic] {
        let answer = test.patch(&format!("{one}?{strict}"), kind, &patch).await;
        let status = answer.refused(422, "Invalid");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(UNKNOWN[0]), "{message}");
    }
}

#[tokio::test]
async fn rule_14_ignore_says_nothing() {
    let test = ApiTest::start().await;
    let path = test.path("apps/v1", "deployments");
    let answer = test
        .post(&format!("{path}?fieldValidation=Ignore"), &misspelt("a"))
        .await;
    answer.is(201);
    warned(&answer, &[]);
}

#[tokio::test]
async fn rule_14_fields_given_twice_count_as_well() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let twice = |name: &str| {
        format!(
            r#"{{"metadata": {{"name": "{name}"}}, "data": {{"a": "1"}}, "data": {{"a": "2"}}}}"#
        )
    };
    let post = async |query: &str, body: String| {
        let call = test.call("POST", &format!("{maps}?fieldValidation={query}"));
        call.body("application/json", body).send().await
    };
    // The last one counts.
    let made = post("Ignore", twice("a")).await.is(201);
    assert_eq!(made["data"]["a"], "2");
    if test.newer(VALIDATION) {
        let answer = post("Warn", twice("b")).await;
        answer.is(201);
        warned(&answer, &[r#"duplicate field "data""#]);
        let status = post("Strict", twice("c")).await.refused(400, "BadRequest");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(r#"duplicate field "data""#), "{message}");
    }
}

#[tokio::test]
async fn rule_14_mistakes_come_in_the_order_of_the_text() {
    let test = ApiTest::start().await;
    if test.lacks(VALIDATION) {
        return;
    }
    let sets = test.path("apps/v1", "replicasets");
    let text = r#"{"metadata": {"name": "a"}, "spec": {"y": {"z": 1, "z": 1}, "replicas": 2,
        "replicas": 3, "y": 2, "selector": {"matchLabels": {"a": "b", "a": "c"}},
        "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"w": 1, "containers": []}}}}"#;
    let call = test.call("POST", &format!("{sets}?fieldValidation=Strict"));
    let answer = call.body("application/json", text.to_owned()).send().await;
    let status = answer.refused(400, "BadRequest");
    let expected = r#"strict decoding error: unknown field "spec.y", duplicate field "spec.replicas", duplicate field "spec.selector.matchLabels.a", unknown field "spec.template.spec.w""#;
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn rule_14_other_values_are_invalid() {
    let test = ApiTest::start().await;
    if test.lacks(VALIDATION) {
        return;
    }
    let maps = test.path("v1", "configmaps");
    let cause = [("FieldValueNotSupported", "fieldValidation")];
    let answer = test
        .post(&format!("{maps}?fieldValidation=Some"), &config_map("a"))
        .await;
    answer.refused_for(422, "Invalid", &cause);
}

#[tokio::test]
async fn rule_14_values_of_the_wrong_type_are_always_refused() {
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
            let answer = test.post(&format!("{path}{query}"), &wrong).await;
            let status = answer.refused(400, "BadRequest");
            let message = status["message"].as_str().unwrap();
            assert!(
                message.contains("cannot be handled as a Deployment"),
                "{message}"
            );
        }
    }
    for body in ["", "{", "[]", "null", "\"text\"", "{} x", "\u{0}"] {
        let answer = test
            .call("POST", &path)
            .body("application/json", body)
            .send()
            .await;
        assert!(
            (400..500).contains(&answer.code),
            "{body:?}: {}",
            answer.text()
        );
    }
}
