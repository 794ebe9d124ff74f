//! The types of the expressions of policies.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{GROUP, common::Server, make, policy, rules};

/// Creates a policy and returns its status when its types have been checked.
async fn checked(server: &Server, spec: Value) -> Value {
    let path = format!("{GROUP}/validatingadmissionpolicies");
    make(server, &path, &policy("p", spec)).await;
    let path = format!("{path}/p");
    let status = async {
        loop {
            let status = server.get(&path).await.json()["status"].clone();
            if status["observedGeneration"] == 1 {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(60), status)
        .await
        .unwrap();
    assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    status
}

#[tokio::test]
async fn expressions_are_checked_against_the_matched_kinds() {
    let server = Server::new();
    let deployments = || rules("apps", "deployments", &["CREATE"]);
    let spec = json!({
        "matchConstraints": deployments(),
        "variables": [{"name": "image", "expression": "object.spec.template.spec.containers[0].image"}],
        "validations": [{
            "expression": "object.spec.replicas > 1 && variables.image.startsWith('i') && request.operation == 'CREATE' && object.metadata.labels['a'] == 'b' && object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
            "messageExpression": "'wants replicas > 1, got ' + string(object.spec.replicas)",
        }],
    });
    assert_eq!(
        checked(&server, spec).await,
        json!({"observedGeneration": 1, "typeChecking": {}})
    );
    let spec = json!({
        "matchConstraints": deployments(),
        "validations": [{
            "expression": "object.spec.replicas > '1'",
            "messageExpression": "'wants replicas > 1, got ' + object.spec.replicas",
        }, {"expression": "object.spec.nothing == 1"}],
    });
    let warnings = checked(&server, spec).await["typeChecking"]["expressionWarnings"].clone();
    assert_eq!(
        warnings,
        json!([
            {"fieldRef": "spec.validations[0].expression", "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n"},
            {"fieldRef": "spec.validations[0].messageExpression", "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:28: found no matching overload for '_+_' applied to '(string, int)'\n | 'wants replicas > 1, got ' + object.spec.replicas\n | ...........................^\n"},
            {"fieldRef": "spec.validations[1].expression", "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nothing'\n | object.spec.nothing == 1\n | ...........^\n"},
        ])
    );
}

#[tokio::test]
async fn expressions_are_checked_against_custom_kinds_and_parameters() {
    let server = Server::new();
    let definition = json!({"metadata": {"name": "crontabs.stable.example.com"}, "spec": {
        "group": "stable.example.com", "scope": "Namespaced",
        "names": {"kind": "CronTab", "plural": "crontabs", "singular": "crontab"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"type": "object", "properties": {
                "cronSpec": {"type": "string"}, "replicas": {"type": "integer"}}}}}}}],
    }});
    make(
        &server,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    let spec = json!({
        "matchConstraints": rules("stable.example.com", "crontabs", &["CREATE"]),
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [
            {"expression": "object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'"},
            {"expression": "object.spec.replicas > '1'"},
            {"expression": "object.spec.maxRetries < 10"},
            {"expression": "params.data['a'] == 1"},
        ],
    });
    let status = checked(&server, spec).await;
    let warnings = status["typeChecking"]["expressionWarnings"]
        .as_array()
        .unwrap()
        .iter();
    let found: Vec<(&str, &str)> = warnings
        .map(|warning| {
            let text = warning["warning"].as_str().unwrap();
            (
                warning["fieldRef"].as_str().unwrap(),
                text.lines().next().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "spec.validations[1].expression",
                "stable.example.com/v1, Kind=CronTab: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'"
            ),
            (
                "spec.validations[2].expression",
                "stable.example.com/v1, Kind=CronTab: ERROR: <input>:1:12: undefined field 'maxRetries'"
            ),
            (
                "spec.validations[3].expression",
                "stable.example.com/v1, Kind=CronTab: ERROR: <input>:1:18: found no matching overload for '_==_' applied to '(string, int)'"
            ),
        ]
    );
}
